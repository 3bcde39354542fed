#include "verbs/store/store_transfer_answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "api/access/shared_files.hpp"
#include "base/system/real_env.hpp"
#include "base/text/count_text.hpp"
#include "store/etcd/etcd_store.hpp"
#include "store/etcd/store_url.hpp"
#include "store/transfer/adopt_log.hpp"
#include "store/transfer/log_copy.hpp"
#include "verbs/cluster/live_session.hpp"
#include "verbs/store/store_answer.hpp"
#include "verbs/store/store_setup.hpp"

namespace orrery {
namespace {

/// What a backup lacks.
struct LostPart {
  JobNumbers jobs;   ///< empty range: none
  StoreTexts texts;  ///< name the lost job numbers
};

/// The catalog may lie beside the controller's state, or in the directory that an operator edits.
CommandOptions with_catalog(const CommandOptions& options, const std::string& state) {
  return with_catalog_of(with_catalog_of(options, state + "/store"),
                         cluster_directory(options) + "/store");
}

Result<LostPart> find_lost(const CommandOptions& options, const EtcdLocation& location,
                           const AdoptableLog& found) {
  if (found.seen.newest == 0) return LostPart{{0, found.marked.next_job}, {}};
  auto log = EtcdStore::open_to_read(location);
  if (!log) return forward_error(log);
  Result<std::unique_ptr<StoredSetup>> setup = StoredSetup::load(options, **log);
  if (!setup) return forward_error(setup);
  Result<std::uint64_t> next = (*setup)->next_job(**log);
  if (!next) return forward_error(next);
  if (found.marked.next_job <= *next) return LostPart{};
  const JobNumbers lost{*next, found.marked.next_job};
  return LostPart{lost, (*setup)->live().lose_jobs(lost)};
}

std::string lost_jobs_text(const JobNumbers& lost) {
  if (lost.to - lost.from == 1) {
    return fmt::format("lost: job {}; this number is not given out again\n", lost.from);
  }
  return fmt::format("lost: jobs {} to {}; these numbers are not given out again\n", lost.from,
                     lost.to - 1);
}

VerbAnswer adopted_answer(const EtcdLocation& location, const AdoptableLog& found, StoreTerm term,
                          const JobNumbers& lost) {
  const auto number = static_cast<std::uint64_t>(term);
  VerbAnswer answer{fmt::format("{}: adopted up to batch {}, in term {}\n", location.text(),
                                found.seen.newest, number),
                    {{"store", location.text()},
                     {"newest_batch", found.seen.newest},
                     {"term", number},
                     {"next_job", found.marked.next_job},
                     {"lost_batches", Json::array()},
                     {"lost_jobs", Json::array()}}};
  if (found.marked.batch > found.seen.newest) {
    answer.json["lost_batches"] = {found.seen.newest + 1, found.marked.batch};
    answer.text +=
        fmt::format("lost: batches {} to {}\n", found.seen.newest + 1, found.marked.batch);
  }
  if (lost.from < lost.to) {
    answer.json["lost_jobs"] = {lost.from, lost.to - 1};
    answer.text += lost_jobs_text(lost);
  }
  answer.text +=
      "next: the same command on the machine of each other controller, then start orreryd; if it "
      "waits because agents run lost jobs, orreryd --accept-lost-jobs stops them\n";
  return answer;
}

/// Whether both name one directory, or one name in an etcd of which they share a member.
bool is_same_log(const CopyStoreRequest& request) {
  if (is_etcd_url(request.from) != is_etcd_url(request.to)) return false;
  if (!is_etcd_url(request.from)) {
    std::error_code none;
    return std::filesystem::equivalent(directory_of_url(request.from), directory_of_url(request.to),
                                       none);
  }
  const Result<EtcdLocation> from = parse_etcd_location(request.from);
  const Result<EtcdLocation> to = parse_etcd_location(request.to);
  if (!from || !to || from->cluster != to->cluster) return false;
  return std::ranges::any_of(from->members, [&](const std::string& member) {
    return std::ranges::find(to->members, member) != to->members.end();
  });
}

/// The directory with the key that seals the files of a log in `state`/store: that of --dir, of the
/// log, or of STATE. Empty: none has a key.
std::string key_directory(const CommandOptions& options, const CopyStoreRequest& request,
                          const std::string& state) {
  std::error_code none;
  for (const std::string& each : {options.cluster_directory, state, request.state}) {
    if (!each.empty() && std::filesystem::exists(each + "/cluster.key", none)) return each;
  }
  return {};
}

/// The files of the cluster beside a log that goes from a directory into etcd, sealed as by the
/// controller that leads; a controller with an empty STATE would make other ones. None: the copy
/// goes elsewhere, or there is no key yet. Errors: of the files; of the key.
Result<StoreTexts> sealed_files(const CommandOptions& options, const CopyStoreRequest& request) {
  StoreTexts sealed;
  if (is_etcd_url(request.from) || !is_etcd_url(request.to)) return sealed;
  std::error_code none;
  const std::string state =
      std::filesystem::canonical(directory_of_url(request.from), none).parent_path().string();
  const std::string directory = key_directory(options, request, state);
  if (state.empty() || directory.empty()) return sealed;
  Result<std::unique_ptr<RealEnv>> env = RealEnv::create();
  if (!env) return forward_error(env);
  auto files = SharedFiles::open((*env)->env(), directory, state);
  if (!files) return forward_error(files);
  (*files)->lead([&sealed](const StoreTexts& texts) -> StorageStatus {
    sealed = texts;
    return {};
  });
  if (Status put = (*files)->put_missing({}); !put) return forward_error(put);
  return sealed;
}

/// Whether a controller starts on the source no more.
bool closes_source(const CopyStoreRequest& request) {
  return is_etcd_url(request.from) || is_etcd_url(request.to);
}

/// Closes the source, so that no controller that was off during the copy claims it.
Status close_copied(const CopyStoreRequest& request, const CopySource& source) {
  if (!closes_source(request)) return {};
  if (!is_etcd_url(request.from)) {
    Result<EtcdLocation> to = parse_etcd_location(request.to);
    if (!to) return forward_error(to);
    StorageStatus closed = close_moved(directory_of_url(request.from), to->text());
    if (!closed) return forward_error(closed);
    return {};
  }
  Result<EtcdLocation> from = parse_etcd_location(request.from);
  if (!from) return forward_error(from);
  if (!is_etcd_url(request.to)) {
    std::error_code none;
    const std::string directory = directory_of_url(request.to);
    return close_source(*from, source, std::filesystem::absolute(directory, none).string());
  }
  Result<EtcdLocation> to = parse_etcd_location(request.to);
  if (!to) return forward_error(to);
  return close_source(*from, source, to->text());
}

/// The commands after a copy. The files of the cluster are no part of a log in a directory.
std::string next_steps(const CopyStoreRequest& request, const CopiedLog& copied) {
  constexpr std::string_view kFiles = "tokens, joins, agents, steps.key and tls";
  if (is_etcd_url(request.to) && is_etcd_url(request.from)) {
    return fmt::format("next: orreryd --dir DIR --state {} --store '{}' ..\n", request.state,
                       request.to);
  }
  if (is_etcd_url(request.to) && copied.sealed > 0) {
    return fmt::format(
        "{} are in the log, sealed: each controller needs the same cluster.key\n"
        "next: orreryd --dir DIR --state {} --store '{}' ..\n",
        kFiles, request.state, request.to);
  }
  if (is_etcd_url(request.to)) {
    return fmt::format(
        "{} stay files: have them in {}, and start the first controller there; it "
        "puts them into the log, sealed. A first controller without them makes new ones, which "
        "this cluster's agents and users do not know\n"
        "next: orreryd --dir DIR --state {} --store '{}' ..\n",
        kFiles, request.state, request.state, request.to);
  }
  if (is_etcd_url(request.from)) {
    return fmt::format(
        "{} are files of a controller's STATE: have them in DIR\n"
        "next: orreryd --dir DIR, where DIR/store is {}\n",
        kFiles, directory_of_url(request.to));
  }
  return fmt::format("next: orreryd --dir DIR, where DIR/store is {}\n",
                     directory_of_url(request.to));
}

VerbAnswer copied_answer(const CopyStoreRequest& request, const CopyPlan& plan,
                         const CopiedLog& copied, const VerifiedHistory& verified) {
  const std::string hash = fmt::format("{:016x}", verified.history_hash);
  VerbAnswer answer;
  answer.json = {{"from", request.from},
                 {"to", request.to},
                 {"oldest_batch", verified.extent.oldest},
                 {"newest_batch", verified.extent.newest},
                 {"snapshots", verified.snapshots},
                 {"archived_jobs", copied.archived},
                 {"from_history_hash", fmt::format("{:016x}", plan.history_hash)},
                 {"history_hash", hash},
                 {"term", copied.term},
                 {"next_job", copied.next_job},
                 {"passed_over", plan.passed_over}};
  answer.text = fmt::format(
      "{}: history hash {:016x}\n{}: history hash {}, {} and {}\n", request.from, plan.history_hash,
      request.to, hash, batches_text(verified.extent), counted(copied.archived, "archived job"));
  for (const std::string& why : plan.passed_over) {
    answer.text += fmt::format("not copied: {}\n", why);
  }
  if (closes_source(request)) {
    answer.text += fmt::format("{} is closed: a controller starts on it no more\n", request.from);
  }
  answer.text += next_steps(request, copied);
  return answer;
}

Error incomplete(const CopyStoreRequest& request, Error error) {
  error.message += fmt::format("; {} is incomplete: remove it", request.to);
  return error;
}

Error not_closed(const CopyStoreRequest& request, Error error) {
  error.message += fmt::format(
      "; {} could not be closed, and {} would be a second log of the same "
      "cluster: remove that",
      request.from, request.to);
  return error;
}

Result<VerifiedHistory> verified_copy(const CopyStoreRequest& request, const CopyPlan& plan) {
  auto copy = open_store_to_read(request.to);
  if (!copy) return forward_error(copy);
  HistoryResult<VerifiedHistory> verified = verify_history(**copy);
  if (!verified) return forward_error(verified);
  if (verified->history_hash == plan.history_hash && verified->extent.newest == plan.newest) {
    return *std::move(verified);
  }
  return environment_error(fmt::format(
      "{}: the copy differs: history {:016x} up to batch {}, expected {:016x} up to batch {}",
      request.to, verified->history_hash, verified->extent.newest, plan.history_hash, plan.newest));
}

}  // namespace

Result<VerbAnswer> adopt_store(const CommandOptions& options, const AdoptStoreRequest& request) {
  Result<EtcdLocation> location = parse_etcd_location(request.url);
  if (!location) return forward_error(location);
  const std::string local = request.state + "/store";
  Result<AdoptableLog> found = find_adoptable(*location, local);
  if (!found) return forward_error(found);
  Result<LostPart> lost = find_lost(with_catalog(options, request.state), *location, *found);
  if (!lost) return forward_error(lost);
  Result<StoreTerm> term = adopt_log(*location, *found, {local, lost->texts, request.watch});
  if (!term) return forward_error(term);
  return adopted_answer(*location, *found, *term, lost->jobs);
}

Result<VerbAnswer> copy_store(const CommandOptions& options, const CopyStoreRequest& asked) {
  CopyStoreRequest request = asked;
  if (request.state.empty()) request.state = cluster_directory(options);
  if (is_same_log(request)) {
    return input_error(
        {}, fmt::format("{} and {}: FROM and TO are the same log", request.from, request.to));
  }
  Result<CopySource> source = open_copy_source({request.from, request.state, request.watch});
  if (!source) return forward_error(source);
  Result<CopyPlan> plan = plan_copy(*source->log);
  if (!plan) return forward_error(plan);
  Result<StoreTexts> sealed = sealed_files(options, request);
  if (!sealed) return forward_error(sealed);
  source->sealed = *std::move(sealed);
  StorageResult<std::unique_ptr<CopyTarget>> target = open_copy_target(request.to, request.state);
  if (!target) return forward_error(target);
  // Sealed files belong to the log only where it is in etcd: a controller alone has them as files.
  const bool shared = is_etcd_url(request.from) && is_etcd_url(request.to);
  const TextChoice belongs = [shared](const std::string& name) {
    return shared || !SharedFiles::is_secret(name);
  };
  Result<CopiedLog> copied = copy_log(*source, *plan, **target, belongs);
  if (!copied) return tl::unexpected(incomplete(request, std::move(copied.error())));
  target->reset();
  Result<VerifiedHistory> verified = verified_copy(request, *plan);
  if (!verified) return tl::unexpected(incomplete(request, std::move(verified.error())));
  if (Status closed = close_copied(request, *source); !closed) {
    return tl::unexpected(not_closed(request, std::move(closed.error())));
  }
  return copied_answer(request, *plan, *copied, *verified);
}

}  // namespace orrery
