// The fleet of a running cluster changes.
#include <algorithm>
#include <set>
#include <utility>

#include "agent/launch_plan.hpp"
#include "control/snapshot.hpp"
#include "executor/controller.hpp"

namespace orrery {
namespace {

/// Returns the jobs that may have ranks on a node, ascending.
std::vector<JobId> jobs_left_on(const State& state, NodeId node) {
  const std::vector<JobId> holders = state.jobs_on(node);
  std::set<JobId> jobs(holders.begin(), holders.end());
  for (const Ghost& ghost : state.ghosts()) {
    if (ghost.at.node == node) jobs.insert(ghost.job);
  }
  return {jobs.begin(), jobs.end()};
}

}  // namespace

const std::string& Controller::fleet_text() const {
  const std::string& changed = state().setup().fleet;
  return changed.empty() ? begun_with().fleet : changed;
}

/// Returns what would change. Errors: the new fleet does not fit the present state, whatever jobs
/// run.
Result<FleetChange> Controller::fleet_change(const std::string& yaml) const {
  const ControlSetup& setup = state().setup();
  const Result<const ControlSetup*> next = setup.fleets(yaml);
  if (!next) return tl::unexpected(next.error());
  const Result<FleetMap> map = fleet_map(*setup.topology, *(*next)->topology);
  if (!map) return tl::unexpected(map.error());
  FleetChange change;
  for (const NodeId node : map->added()) {
    change.added.push_back((*next)->topology->node_name(node));
  }
  for (const NodeId node : map->retired()) {
    change.retired.push_back(setup.topology->node_name(node));
    std::vector<JobId> jobs = jobs_left_on(state(), node);
    if (!jobs.empty()) change.busy.push_back({change.retired.back(), std::move(jobs)});
  }
  if (!change.busy.empty()) return change;
  const Result<State> changed = with_fleet(state(), **next);
  if (!changed) return tl::unexpected(changed.error());
  return change;
}

void Controller::apply_fleet(const std::string& yaml, FleetApply how, const std::string& request_id,
                             Answered<FleetChange> answered) {
  if (std::string why = halted(); !why.empty()) {
    return answered(tl::unexpected(Error{ErrorKind::kEnvironment, std::move(why), {}}));
  }
  Result<FleetChange> change = fleet_change(yaml);
  const bool only_shown = how == FleetApply::kDryRun || yaml == fleet_text();
  if (!change || only_shown || !change->busy.empty()) {
    if (change) change->applied = how == FleetApply::kApply && change->busy.empty();
    return answered(std::move(change));
  }
  const Topology& before = *state().setup().topology;
  const FleetMap map = *fleet_map(before, *(*state().setup().fleets(yaml))->topology);
  for (const NodeId node : map.retired()) commands_->lose(node, before.node_name(node));
  host_->drop_orders();
  change->applied = true;
  handle(SetFleet{yaml}, request_id,
         [change = *std::move(change), answered = std::move(answered)](const Answer& answer) {
           if (!answer.status) return answered(tl::unexpected(answer.status.error()));
           answered(change);
         });
  if (fleet_text() == yaml) use_fleet(map);
  schedule();
}

/// Makes everything beside the state that has ids of the fleet follow a change.
void Controller::use_fleet(const FleetMap& map) {
  ++fleets_;
  setup_->use(state());
  const ControlSetup& setup = state().setup();
  const Error retired{ErrorKind::kInput, "the node was retired from the fleet", {}};
  for (AgentSession* session : agents_->use(*setup.topology, map)) session->replace(retired);
  commands_->use(map);
  number_nodes();
  const LinkSetup link{
      .cluster = cluster_,
      .term = static_cast<std::uint64_t>(term_),
      .sequence = link_->sequence(),
      .heartbeats = {.grace = Duration::from_seconds(options_.settings.node_grace.value())}};
  *link_ = link_of(state(), link, now());
  beside_.run([this, tree = setup.tree] { passes_.emplace(*tree); });
  std::map<LogKey, NodeId> ran_on;
  for (const auto& [key, node] : ran_on_) {
    if (map.nodes[node.value()].valid()) ran_on.emplace(key, map.nodes[node.value()]);
  }
  ran_on_ = std::move(ran_on);
  for (auto& [number, wait] : log_waits_) wait.node = map.nodes[wait.node.value()];
  std::map<NodeId, std::uint64_t> foreign;
  for (const auto& [node, times] : counts_.foreign_reports) {
    if (map.nodes[node.value()].valid()) foreign.emplace(map.nodes[node.value()], times);
  }
  counts_.foreign_reports = std::move(foreign);
  fleet_difference_ = {};
  log_.info(wall(), "fleet changed",
            {{"added", map.added().size()}, {"retired", map.retired().size()}});
}

void Controller::number_nodes() {
  numbered_.clear();
  for (std::uint32_t n = 0; n < state().setup().topology->node_count(); ++n) {
    numbered_.emplace(state().node(NodeId(n)).number, NodeId(n));
  }
}

}  // namespace orrery
