// orrery fleet apply
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "apps/orrery/command.hpp"
#include "apps/orrery/live_verb.hpp"
#include "apps/orrery/output.hpp"
#include "base/format/document.hpp"
#include "base/system/real_clock.hpp"
#include "base/text/count_text.hpp"
#include "fleet/spec/spec.hpp"
#include "orrery/v1/orrery.pb.h"
#include "verbs/local/local_cluster.hpp"

namespace orrery {
namespace {

constexpr int kNamesShown = 20;
constexpr int kEmptyLookMs = 200;
constexpr Duration kTellEvery = Duration::seconds(10);
/// A request is at most 4 MiB, and has other fields.
constexpr std::size_t kFleetMax = (std::size_t{4} << 20) - 4'096;

struct ApplyAsked {
  std::string file;
  bool dry_run = false;
  bool drain = false;
  bool force = false;
};

using Names = google::protobuf::RepeatedPtrField<std::string>;

/// Returns "node-2, node-3 and 180 more".
template <class List>
std::string list_of(const List& names) {
  const auto all = static_cast<int>(names.size());
  const int shown = std::min(all, kNamesShown);
  const std::string text =
      one_line(fmt::format("{}", fmt::join(names.begin(), names.begin() + shown, ", ")));
  return all > shown ? fmt::format("{} and {} more", text, all - shown) : text;
}

std::string counted_nodes(int count) { return counted(static_cast<std::uint64_t>(count), "node"); }

std::string nodes_line(const Names& names, std::string_view what) {
  if (names.empty()) return "";
  return fmt::format("{} {}: {}\n", counted_nodes(names.size()), what, list_of(names));
}

std::string busy_lines(const v1::FleetChange& change) {
  std::string text;
  for (int at = 0; at < std::min(change.busy_size(), kNamesShown); ++at) {
    const v1::BusyNode& busy = change.busy(at);
    text += fmt::format("{} is busy: {} {}\n", one_line(busy.node()),
                        busy.jobs_size() == 1 ? "job" : "jobs", list_of(busy.jobs()));
  }
  if (change.busy_size() > kNamesShown) {
    text += fmt::format("{} more are busy\n", counted_nodes(change.busy_size() - kNamesShown));
  }
  return text;
}

/// Returns what the file changes.
std::string change_lines(const v1::FleetChange& change) {
  std::string text = nodes_line(change.added(), "added") + nodes_line(change.retired(), "retired") +
                     busy_lines(change);
  for (const std::string& line : change.changed()) text += one_line(line) + "\n";
  return text;
}

/// Returns the part of a text that comes before its second document.
Result<std::string> first_document(const std::string& text) {
  const Result<std::vector<Document>> documents = Document::parse_all(text, "");
  if (!documents) return tl::unexpected(documents.error());
  if (documents->size() < 2) return text;
  std::size_t end = 0;
  for (int line = 1; line < (*documents)[1].line(); ++line) end = text.find('\n', end) + 1;
  return text.substr(0, end);
}

/// Puts the files of a directory in the place of the documents that follow a fleet.
Status add_facts(const std::string& directory, std::string& fleet) {
  const Result<std::vector<FactOverlay>> overlays = read_fact_overlays(directory);
  if (!overlays) return tl::unexpected(overlays.error());
  if (overlays->empty()) return {};
  Result<std::string> first = first_document(fleet);
  if (!first) return forward_error(first);
  fleet = *std::move(first);
  for (const FactOverlay& overlay : *overlays) {
    if (!overlay.models.empty()) {
      return input_error(overlay.models.front().root().position(),
                         "a model cannot be added under running jobs; copy it into the catalog/ of "
                         "the controller's directory and restart orreryd");
    }
    for (const std::vector<Document>* documents : {&overlay.catalogs, &overlay.calibrations}) {
      for (const Document& document : *documents) {
        const Result<std::string> text = read_file(document.file(), Document::kSizeMax);
        if (!text) return tl::unexpected(text.error());
        if (!fleet.ends_with('\n')) fleet += '\n';
        fleet += fmt::format("---\n# {}\n{}",
                             std::filesystem::path(document.file()).filename().string(), *text);
      }
    }
  }
  return {};
}

/// Returns the text of a fleet file, with the facts of --catalog if that is given.
Result<std::string> read_fleet(const CommandOptions& options, const std::string& file) {
  Result<std::string> text = read_file(file, kFleetMax);
  if (!text) return text;
  // An error then names this file, and not the one that the controller writes.
  const Result<FleetFile> read = read_fleet_file(*text, file == "-" ? "<stdin>" : file);
  if (!read) return tl::unexpected(read.error());
  if (Status added = add_facts(options.catalog_directory, *text); !added) {
    return forward_error(added);
  }
  if (text->size() <= kFleetMax) return text;
  return input_error({}, fmt::format("{} with the files of {}: {} bytes, expected at most {}", file,
                                     options.catalog_directory, text->size(), kFleetMax));
}

enum class Asking { kDryRun, kApply };

Result<v1::FleetChange> ask(LiveSession& session, const std::string& fleet, Asking what) {
  v1::ApplyFleetRequest request;
  request.set_request_id(session.request_id());
  request.set_fleet(fleet);
  request.set_dry_run(what == Asking::kDryRun);
  return session.client().call<v1::FleetChange>("ApplyFleet", request);
}

/// Empties the nodes that are retired, and tells what it waits for.
class Emptying {
 public:
  enum class How { kDrain, kEvict };
  Emptying(LiveSession& session, How how) : session_(session), how_(how) {}

  /// Returns when no job holds one of the busy nodes. All retired nodes are drained, or a job could
  /// move from one of them to another.
  [[nodiscard]] Status run(const v1::FleetChange& change) {
    for (const std::string& node : change.retired()) {
      const auto same = [&](const v1::BusyNode& busy) { return busy.node() == node; };
      const bool busy = std::any_of(change.busy().begin(), change.busy().end(), same);
      // One that cannot take work needs no drain.
      if (Status drained = drain(node); !drained && busy) return drained;
    }
    for (const v1::BusyNode& busy : change.busy()) {
      if (Status empty = wait_for(busy.node()); !empty) return empty;
    }
    (void)::poll(nullptr, 0, kEmptyLookMs);
    return {};
  }

 private:
  [[nodiscard]] Status drain(const std::string& node) {
    v1::DrainNodeRequest request;
    request.set_request_id(session_.request_id());
    request.set_name(node);
    request.set_why("retired by fleet apply");
    request.set_at_once(how_ == How::kEvict);
    const auto drained = session_.client().call<v1::NodeResponse>("DrainNode", request);
    if (!drained) return tl::unexpected(drained.error());
    return {};
  }

  [[nodiscard]] Status wait_for(const std::string& name) {
    v1::GetNodeRequest request;
    request.set_name(name);
    while (true) {
      const auto node = session_.client().call<v1::Node>("GetNode", request);
      if (!node) return tl::unexpected(node.error());
      if (node->jobs().empty()) return {};
      tell(*node);
      (void)::poll(nullptr, 0, kEmptyLookMs);
    }
  }

  void tell(const v1::Node& node) {
    const Instant now = clock_.now_monotonic();
    if (told_ && now - *told_ < kTellEvery) return;
    told_ = now;
    print_message(fmt::format(
        "waiting until {} is empty: {} {} on it. Ctrl-C ends the wait and "
        "leaves the retired nodes draining\n",
        one_line(node.name()), node.jobs_size() == 1 ? "job" : "jobs", list_of(node.jobs())));
  }

  LiveSession& session_;
  How how_;
  RealClock clock_;
  std::optional<Instant> told_;
};

Status refuse_busy(const v1::FleetChange& change) {
  return infeasible(fmt::format(
      "the fleet is not changed: {} of those retired {} busy. --drain starts no new work there, "
      "waits until the jobs have ended and then changes the fleet; --force evicts the jobs as "
      "`orrery drain --now` does and changes it at once",
      counted_nodes(change.busy_size()), change.busy_size() == 1 ? "is" : "are"));
}

/// Returns the commands by which the agents of added nodes join.
std::string join_lines(LiveSession& session, const Names& added, const std::string& directory) {
  if (added.empty()) return "";
  std::string text = fmt::format(
      "Each added node needs an agent. Make its token here, and start the agent on the node with "
      "the token\nand a copy of {}/tls/ca.pem, within an hour:\n",
      directory);
  for (int at = 0; at < std::min(added.size(), kNamesShown); ++at) {
    const std::string node = one_line(added[at]);
    text += fmt::format(
        "  orrery node token {0} > {0}.token\n"
        "  orrery-agent --node {0} --controller {1} --ca ca.pem --dir /var/lib/orrery/agent --join "
        "@{0}.token\n",
        node, session.client().address());
  }
  if (added.size() > kNamesShown) {
    text += fmt::format("  and so on for {}\n", counted_nodes(added.size() - kNamesShown));
  }
  return text;
}

/// Starts and ends agents where the cluster is one of `orrery up`; else says how agents join.
Result<std::string> follow(LiveSession& session, const CommandOptions& options,
                           const std::string& fleet, const v1::FleetChange& change) {
  const std::string directory = cluster_directory(options);
  std::error_code failed;
  if (!std::filesystem::exists(directory + "/local.json", failed)) {
    return join_lines(session, change.added(), directory);
  }
  RealStorage storage;
  const std::string path = directory + "/fleet.yaml";
  if (const auto there = storage.read_file(path, kFleetMax); !there || *there != fleet) {
    StorageStatus put = storage.write_file(path, fleet);
    if (!put) return forward_error(put);
  }
  Result<LocalCluster> cluster = LocalCluster::open(directory);
  if (!cluster) return forward_error(cluster);
  if (!cluster->runs()) return join_lines(session, change.added(), directory);
  const std::set<std::string> retired(change.retired().begin(), change.retired().end());
  std::set<std::string> replaced;
  for (const std::string& node : change.added()) {
    if (retired.contains(node)) replaced.insert(node);
  }
  const Result<LocalCluster::Followed> done = cluster->follow_fleet(replaced);
  if (!done) return tl::unexpected(done.error());
  std::string text;
  if (!done->started.empty()) text += fmt::format("started agents: {}\n", list_of(done->started));
  if (!done->ended.empty()) text += fmt::format("ended agents: {}\n", list_of(done->ended));
  return text;
}

Status print_dry_run(const CommandOptions& options, const v1::FleetChange& change) {
  if (options.output == OutputFormat::kJson) {
    print_answer(change);
    return {};
  }
  std::string end = "nothing was changed (--dry-run)\n";
  if (!change.busy().empty()) {
    end =
        "nothing was changed (--dry-run); with busy nodes the fleet changes with --drain or "
        "--force alone\n";
  }
  if (change.changed().empty()) end = "the cluster has this fleet already\n";
  print_text(change_lines(change) + end);
  return {};
}

Status print_refused(const CommandOptions& options, const v1::FleetChange& change) {
  if (options.output == OutputFormat::kJson) {
    print_answer(change);
  } else {
    print_text(change_lines(change));
  }
  return refuse_busy(change);
}

Status apply_fleet(const CommandOptions& options, LiveSession& session, const ApplyAsked& asked) {
  const Result<std::string> fleet = read_fleet(options, asked.file);
  if (!fleet) return tl::unexpected(fleet.error());
  // A call that is repeated finds the fleet changed, so that what it changes is asked for first.
  Result<v1::FleetChange> change = ask(session, *fleet, Asking::kDryRun);
  if (!change) return forward_error(change);
  if (asked.dry_run) return print_dry_run(options, *change);
  const bool json = options.output == OutputFormat::kJson;
  const bool may_empty = asked.drain || asked.force;
  if (!json && (change->busy().empty() || may_empty)) print_text(change_lines(*change));
  Emptying emptying(session, asked.force ? Emptying::How::kEvict : Emptying::How::kDrain);
  v1::FleetChange now = *change;
  while (true) {
    if (!now.busy().empty()) {
      if (!may_empty) return print_refused(options, now);
      if (Status emptied = emptying.run(now); !emptied) return emptied;
    }
    Result<v1::FleetChange> answer = ask(session, *fleet, Asking::kApply);
    if (!answer) return forward_error(answer);
    if (answer->applied()) break;
    if (answer->busy().empty()) {
      return environment_error("the controller did not change the fleet and gave no reason");
    }
    now = *std::move(answer);
  }
  change->set_applied(true);
  change->clear_busy();
  const Result<std::string> followed = follow(session, options, *fleet, *change);
  if (json) {
    print_answer(*change);
  } else {
    print_text(change->changed().empty() ? "the cluster has this fleet already\n"
                                         : "the fleet is changed\n");
    if (followed) print_text(*followed);
  }
  if (!followed) return tl::unexpected(followed.error());
  return {};
}

}  // namespace

void add_fleet_apply_command(CLI::App& fleet, const CommandOptions& options, Verb& chosen) {
  auto asked = std::make_shared<ApplyAsked>();
  CLI::App& verb =
      *fleet.add_subcommand("apply", "add and retire nodes of a running cluster, under its jobs");
  verb.add_option("FILE", asked->file, "a fleet spec; - is standard input")->required();
  verb.add_flag("--dry-run", asked->dry_run, "show what would change, and change nothing");
  CLI::Option* drain = verb.add_flag(
      "--drain", asked->drain,
      "start no new work on nodes that are retired, wait until their jobs have ended, then apply");
  verb.add_flag("--force", asked->force,
                "evict the jobs of nodes that are retired, as `orrery drain --now` does, and apply")
      ->excludes(drain);
  verb.footer(
      "Examples:\n"
      "  orrery fleet apply .orrery/fleet.yaml --dry-run\n"
      "  orrery fleet apply .orrery/fleet.yaml --drain\n"
      "  orrery fleet apply .orrery/fleet.yaml --catalog prices\n"
      "\nDocuments of kind Catalog or Calibration may follow the fleet in its file, each after a\n"
      "line of ---; those of --catalog take their place. They change prices, node types and\n"
      "constants.\n"
      "\nIt is refused, with exit status 1, where a job holds a node that the file retires, and\n"
      "where a new catalog or calibration would give a running job another plan. In a directory\n"
      "of `orrery up` it starts and ends the agents, too.\n");
  run_live<ApplyAsked>(verb, options, chosen, {asked, apply_fleet});
}

}  // namespace orrery
