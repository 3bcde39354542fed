#include "executor/slurm/slurm_manager.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/text/utf8.hpp"
#include "executor/slurm/sbatch_answer.hpp"
#include "executor/slurm/slurm_lists.hpp"
#include "executor/slurm/slurm_names.hpp"

namespace orrery {
namespace {

/// Returns the environment of Slurm's programs. sbatch hands it to the job, so it has nothing that
/// is the daemon's own.
std::vector<std::string> environment(const std::string& slurm_conf) {
  constexpr std::array<std::string_view, 5> kKept = {
      "PATH=", "HOME=", "USER=", "LOGNAME=", "LD_LIBRARY_PATH="};
  // squeue prints times of day without their zone.
  std::vector<std::string> variables = {"LC_ALL=C", "TZ=UTC0"};
  variables.reserve(variables.size() + kKept.size() + 1);
  for (char** each = ::environ; *each != nullptr; ++each) {
    const std::string_view variable = *each;
    const auto starts = [&](std::string_view name) { return variable.starts_with(name); };
    if (std::any_of(kKept.begin(), kKept.end(), starts)) variables.emplace_back(variable);
  }
  if (!slurm_conf.empty()) variables.push_back("SLURM_CONF=" + slurm_conf);
  return variables;
}

/// Returns the nodes to exclude: those of an option, which a second one would replace, too.
std::string excluded(const std::vector<std::string>& options, std::vector<std::string> avoid) {
  constexpr std::string_view kOption = "--exclude=";
  if (avoid.empty()) return "";
  for (const std::string& option : options) {
    if (option.starts_with(kOption)) avoid.push_back(option.substr(kOption.size()));
  }
  return fmt::format("{}", fmt::join(avoid, ","));
}

/// Returns an account or QOS in which the tenant of the hold's job has its place.
std::string with_tenant(std::string text, std::string_view tenant) {
  const std::string_view last = tenant.substr(tenant.find_last_of('/') + 1);
  for (std::size_t at = text.find(kTenantMark); at != text.npos;
       at = text.find(kTenantMark, at + last.size())) {
    text.replace(at, kTenantMark.size(), last);
  }
  return text;
}

/// Returns sbatch's arguments. sbatch takes the last of two options of one name.
std::vector<std::string> sbatch_words(const SlurmSetup& setup, const EnsureHold& hold) {
  constexpr std::int64_t kMinute = Duration::minutes(1).count_ns();
  const std::int64_t minutes = std::max<std::int64_t>(
      1, hold.time.count_ns() / kMinute + (hold.time.count_ns() % kMinute > 0 ? 1 : 0));
  std::vector<std::string> words = {"sbatch"};
  words.reserve(setup.sbatch_options.size() + 20);
  words.insert(words.end(), setup.sbatch_options.begin(), setup.sbatch_options.end());
  const auto add = [&](std::string_view option, const std::string& value) {
    if (!value.empty()) words.push_back(fmt::format("{}={}", option, value));
  };
  add("--partition", setup.partition);
  add("--account", with_tenant(setup.account, hold.tenant));
  add("--qos", with_tenant(setup.qos, hold.tenant));
  add("--reservation", setup.reservation);
  add("--job-name", slurm_job_name(setup.cluster, hold.key));
  add("--comment", slurm_job_comment(setup.cluster, hold.key));
  add("--nodes", fmt::format("{}", hold.nodes));
  add("--time", fmt::format("{}", minutes));
  add("--output", setup.log_file);
  add("--exclude", excluded(setup.sbatch_options, hold.avoid));
  for (const char* each : {"--dependency=singleton", "--exclusive", "--no-kill", "--no-requeue",
                           "--chdir=/", "--parsable"}) {
    words.emplace_back(each);
  }
  return words;
}

/// Returns what went wrong with a program that only lists; empty: nothing did.
std::string failure_of(std::string_view program, const SlurmCommandEnd& end) {
  constexpr std::size_t kShown = 400;
  std::string failure = end.failure;
  if (failure.empty() && end.status != 0) failure = fmt::format("exit status {}", end.status);
  if (failure.empty()) return failure;
  std::string_view words = end.errors;
  while (words.ends_with('\n')) words.remove_suffix(1);
  return fmt::format("{}: {}{}{}", program, failure, words.empty() ? "" : ": ",
                     printable(words, kShown));
}

HoldAnswer answer_of(const HoldKey& key, const SlurmCommandEnd& end) {
  HoldAnswer answer{.key = key};
  if (end.failure.empty() && end.status == 0) {
    const Result<std::string> id = read_sbatch(end.output);
    if (id) answer.id = *id;
    if (!id) answer.text = id.error().message;
    return answer;
  }
  SbatchFailure failure = read_sbatch_errors(end.errors);
  if (end.failure.empty()) {
    answer.refused = failure.refused;
    answer.text = failure.text.empty() ? failure_of("sbatch", end) : std::move(failure.text);
    return answer;
  }
  answer.text = failure_of("sbatch", end);
  if (!end.started) answer.refused = HoldRefusal::kBusy;  // so there is no job
  return answer;
}

bool is_list(const ManagerOrder& order) { return std::holds_alternative<ListHolds>(order.what); }

/// Whether two orders other than for lists ask for the same.
bool ask_the_same(const ManagerOrder& a, const ManagerOrder& b) {
  if (const auto* first = std::get_if<EnsureHold>(&a.what)) {
    const auto* second = std::get_if<EnsureHold>(&b.what);
    return second != nullptr && first->key == second->key;
  }
  const auto* first = std::get_if<ReleaseHold>(&a.what);
  const auto* second = std::get_if<ReleaseHold>(&b.what);
  return first != nullptr && second != nullptr && first->key == second->key &&
         first->id == second->id;
}

}  // namespace

SlurmManager::SlurmManager(RealEnv& real, SlurmSetup setup, Reported reported)
    : real_(real), setup_(std::move(setup)), reported_(std::move(reported)) {}

SlurmManager::~SlurmManager() {
  if (later_) real_.env().timers.cancel(*later_);
}

void SlurmManager::carry_out(const ManagerOrder& order) {
  if (is_list(order) && join_list(order)) return;
  const auto same = std::find_if(waiting_.begin(), waiting_.end(), [&](const ManagerOrder& each) {
    return ask_the_same(each, order);
  });
  if (same != waiting_.end()) {
    *same = order;
    return;
  }
  waiting_.push_back(order);
  next();
}

/// Lets a list join the last one that waits, if two of them or nothing behind it do. Returns
/// whether it did.
bool SlurmManager::join_list(ManagerOrder order) {
  const auto last = std::find_if(waiting_.rbegin(), waiting_.rend(), is_list);
  if (last == waiting_.rend()) return false;
  const bool others = std::find_if(std::next(last), waiting_.rend(), is_list) != waiting_.rend();
  if (!others && last != waiting_.rbegin()) return false;
  if (std::get<ListHolds>(last->what).foreign) std::get<ListHolds>(order.what).foreign = true;
  waiting_.erase(std::next(last).base());
  waiting_.push_back(std::move(order));  // behind all that was ordered before it
  return true;
}

void SlurmManager::next() {
  while (!order_ && !waiting_.empty()) {
    order_ = std::move(waiting_.front());
    waiting_.pop_front();
    std::visit([this](const auto& what) { start(what); }, ManagerOrder(*order_).what);
  }
}

void SlurmManager::start(const EnsureHold& ensure) {
  Result<std::string> script = pilot_script(setup_.agent, ensure);
  if (!script) {
    HoldAnswer refusal{.key = ensure.key,
                       .refused = HoldRefusal::kNever,
                       .text = std::move(script.error().message)};
    later_ = real_.env().timers.call_after(Duration(), [this, refusal = std::move(refusal)] {
      later_.reset();
      answer(refusal);
    });
    return;
  }
  run(sbatch_words(setup_, ensure), *std::move(script),
      [this, key = ensure.key](const SlurmCommandEnd& end) { answer(answer_of(key, end)); });
}

/// Slurm cancels a job if both its name and its id are those given.
void SlurmManager::start(const ReleaseHold& release) {
  if (!is_slurm_job_id(release.id)) return done(std::nullopt);
  run({"scancel", "--name=" + slurm_job_name(setup_.cluster, release.key), release.id}, "",
      [this](const SlurmCommandEnd&) { done(std::nullopt); });
}

void SlurmManager::start(const ListHolds& list) {
  list_ = {.separator = squeue_separator(real_.env().entropy.draw()),
           .now_wall = real_.env().clock.now_wall()};
  std::vector<std::string> words = {"squeue", "--noheader", "--all", "--states=all"};
  if (!list.foreign) words.push_back(fmt::format("--user={}", ::geteuid()));
  words.push_back("--format=" + squeue_format(list_.separator));
  run(std::move(words), "", [this, foreign = list.foreign](const SlurmCommandEnd& end) {
    if (std::string failure = failure_of("squeue", end); !failure.empty()) {
      return answer(ManagerListing{.trouble = std::move(failure)});
    }
    auto jobs = read_squeue(end.output, {.separator = list_.separator,
                                         .cluster = setup_.cluster,
                                         .uid = ::geteuid(),
                                         .now_wall = list_.now_wall,
                                         .foreign = foreign});
    if (!jobs) return answer(ManagerListing{.trouble = jobs.error().message});
    list_.jobs = *std::move(jobs);
    list_nodes();
  });
}

/// Says what the ends of holds in a complete list prove. Only control groups hold every process
/// that a job started; what cannot be asked counts as not proven.
void SlurmManager::judge_ends(ManagerListing listing) {
  const auto has_ended = [](const HoldSeen& hold) { return hold.phase == HoldPhase::kEnded; };
  if (std::none_of(listing.holds.begin(), listing.holds.end(), has_ended)) {
    return answer(std::move(listing));
  }
  if (!tracks_all_) {
    return run({"scontrol", "show", "config"}, "",
               [this, listing = std::move(listing)](const SlurmCommandEnd& end) mutable {
                 if (failure_of("scontrol", end).empty()) {
                   tracks_all_ = tracks_all_processes(end.output);
                   return judge_ends(std::move(listing));
                 }
                 doubt_ends(listing.holds);
                 answer(std::move(listing));
               });
  }
  if (!*tracks_all_) doubt_ends(listing.holds);
  answer(std::move(listing));
}

void SlurmManager::list_nodes() {
  run({"scontrol", "--all", "--oneliner", "show", "node"}, "", [this](const SlurmCommandEnd& end) {
    std::string failure = failure_of("scontrol", end);
    if (failure.empty()) {
      const auto nodes = read_slurm_nodes(end.output);
      if (nodes) return judge_ends(join_slurm_lists(std::move(list_.jobs), *nodes));
      failure = nodes.error().message;
    }
    answer(ManagerListing{.trouble = std::move(failure),
                          .holds = std::move(list_.jobs.holds),
                          .foreign = std::move(list_.jobs.foreign)});
  });
}

void SlurmManager::run(std::vector<std::string> words, std::string input,
                       SlurmCommand::Ended ended) {
  if (!setup_.programs.empty()) words[0] = setup_.programs + "/" + words[0];
  const SlurmCommandStart start{.words = std::move(words),
                                .input = std::move(input),
                                .variables = environment(setup_.slurm_conf),
                                .timeout = setup_.timeout};
  command_ = std::make_unique<SlurmCommand>(
      real_, start, [this, ended = std::move(ended)](SlurmCommandEnd end) {
        const std::unique_ptr<SlurmCommand> past = std::move(command_);
        ended(std::move(end));
      });
}

void SlurmManager::done(std::optional<ManagerReport> report) {
  order_.reset();
  next();
  if (report) reported_(*std::move(report));
}

void SlurmManager::answer(HoldAnswer answer) {
  done(ManagerReport{.manager = order_->manager, .what = std::move(answer)});
}

void SlurmManager::answer(ManagerListing listing) {
  listing.asked = std::get<ListHolds>(order_->what).asked;
  done(ManagerReport{.manager = order_->manager, .what = std::move(listing)});
}

}  // namespace orrery
