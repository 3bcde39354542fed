#include "verbs/nodes/fleet_apply.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/format/document.hpp"
#include "base/system/real_clock.hpp"
#include "base/text/terminal_text.hpp"
#include "fleet/spec/spec.hpp"
#include "verbs/local/local_cluster.hpp"
#include "verbs/nodes/fleet_change_text.hpp"

namespace orrery {
namespace {

constexpr int kEmptyLookMs = 200;
constexpr Duration kLockPatience = Duration::minutes(2);
constexpr Duration kTellEvery = Duration::seconds(10);
/// A request is at most 4 MiB, and has other fields.
constexpr std::size_t kFleetMax = (std::size_t{4} << 20) - 4'096;

/// Makes the line ends of another system those of the controller's text, so that an unchanged line
/// is not shown as changed.
void drop_carriage_returns(std::string& text) {
  for (std::size_t at = text.find("\r\n"); at != text.npos; at = text.find("\r\n", at)) {
    text.erase(at, 1);
  }
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

enum class Asking { kDryRun, kApply };

/// `from`: digest of the fleet for which the change was shown; empty: none was.
Result<v1::FleetChange> ask(LiveSession& session, const FleetText& fleet, Asking what,
                            const std::string& from) {
  v1::ApplyFleetRequest request;
  request.set_request_id(session.request_id());
  request.set_fleet(fleet.yaml);
  request.set_file(fleet.file);
  request.set_dry_run(what == Asking::kDryRun);
  request.set_from(from);
  return session.client().call<v1::FleetChange>("ApplyFleet", request);
}

/// Empties the nodes that are retired, and tells what it waits for.
class Emptying {
 public:
  Emptying(LiveSession& session, BusyNodes how, const LiveProgress& said)
      : session_(session), how_(how), said_(said) {}

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
    request.set_why("to be retired by fleet apply");
    request.set_at_once(how_ == BusyNodes::kEvict);
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
    said_.message(emptying_text(node));
  }

  LiveSession& session_;
  BusyNodes how_;
  const LiveProgress& said_;
  RealClock clock_;
  std::optional<Instant> told_;
};

}  // namespace

Result<std::string> first_document(const std::string& text) {
  const Result<std::vector<Document>> documents = Document::parse_all(text, "");
  if (!documents) return tl::unexpected(documents.error());
  if (documents->size() < 2) return text;
  std::size_t end = 0;
  for (int line = 1; line < (*documents)[1].line(); ++line) end = text.find('\n', end) + 1;
  return text.substr(0, end);
}

Result<FleetText> read_fleet_to_apply(const std::string& file, const std::string& facts_directory) {
  Result<std::string> text = read_file(file, kFleetMax);
  if (!text) return forward_error(text);
  drop_carriage_returns(*text);
  FleetText fleet{*std::move(text), file == "-" ? "<stdin>" : file};
  const Result<FleetFile> read = read_fleet_file(fleet.yaml, fleet.file);
  if (!read) return tl::unexpected(read.error());
  if (Status added = add_facts(facts_directory, fleet.yaml); !added) return forward_error(added);
  if (!facts_directory.empty()) fleet.file += fmt::format(" with {}", facts_directory);
  if (fleet.yaml.size() <= kFleetMax) return fleet;
  return input_error({}, fmt::format("{} with the files of {}: {} bytes, expected at most {}", file,
                                     facts_directory, fleet.yaml.size(), kFleetMax));
}

Result<v1::FleetChange> dry_run_fleet(LiveSession& session, const FleetText& fleet) {
  return ask(session, fleet, Asking::kDryRun, "");
}

Result<AppliedFleet> apply_fleet(LiveSession& session, const FleetApplication& application,
                                 const LiveProgress& said) {
  Emptying emptying(session, application.busy, said);
  v1::FleetChange now = application.change;
  while (true) {
    if (!now.busy().empty()) {
      if (application.busy == BusyNodes::kRefuse) return AppliedFleet{std::move(now), true};
      if (Status emptied = emptying.run(now); !emptied) return forward_error(emptied);
    }
    Result<v1::FleetChange> answer =
        ask(session, application.fleet, Asking::kApply, application.change.from());
    if (!answer) return forward_error(answer);
    if (answer->applied()) break;
    if (answer->busy().empty()) {
      return environment_error("the controller did not change the fleet and gave no reason");
    }
    now = *std::move(answer);
  }
  AppliedFleet applied{application.change};
  applied.change.set_applied(true);
  applied.change.clear_busy();
  return applied;
}

Result<std::string> follow_fleet(const LiveCall& call, const v1::FleetChange& change) {
  const std::string directory = cluster_directory(call.options);
  const FleetPlace place{fmt::format("{}", fmt::join(call.session.client().addresses(), ",")),
                         directory};
  std::error_code failed;
  if (!std::filesystem::exists(directory + "/local.json", failed)) {
    return join_text(change.added(), place);
  }
  Result<LocalCluster> cluster = LocalCluster::open(directory, kLockPatience);
  if (!cluster) return forward_error(cluster);
  if (!cluster->runs()) return join_text(change.added(), place);
  const std::set<std::string> retired(change.retired().begin(), change.retired().end());
  std::set<std::string> replaced;
  for (const std::string& node : change.added()) {
    if (retired.contains(node)) replaced.insert(node);
  }
  const Result<LocalCluster::Followed> done = cluster->follow_fleet(replaced);
  if (!done) return tl::unexpected(done.error());
  const auto line = [](std::string_view what, const std::vector<std::string>& nodes) {
    const NodeNames names(nodes.begin(), nodes.end());
    return nodes.empty() ? "" : fmt::format("{} agents: {}\n", what, list_text(names));
  };
  return line("started", done->started) + line("ended", done->ended);
}

}  // namespace orrery
