#include "executor/fleet_changes.hpp"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "base/format/xxh3.hpp"
#include "control/state/snapshot.hpp"
#include "fleet/fleet_map.hpp"

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

/// Returns the names of nodes whose rack has another path, in the order of their old ids.
std::vector<std::string> moved_nodes(const Topology& from, const Topology& to,
                                     const FleetMap& map) {
  std::vector<std::string> moved;
  for (std::size_t i = 0; i < map.nodes.size(); ++i) {
    if (!map.nodes[i].valid()) continue;
    const NodeId before = NodeId::at(i);
    if (from.path(from.place(before).rack) == to.path(to.place(map.nodes[i]).rack)) continue;
    moved.push_back(from.node_name(before));
  }
  return moved;
}

}  // namespace

const SetupTexts& FleetChanges::begun_with() const { return followers_.setup.texts(); }

const std::string& FleetChanges::text() const {
  return changed_before() ? state().setup().fleets.text : followers_.setup.texts().fleet;
}

/// Returns what would change. Errors: the new fleet does not fit the present one, whatever jobs
/// run.
Result<FleetChange> FleetChanges::change_to(const std::string& yaml) const {
  const ControlSetup& setup = state().setup();
  const Result<const ControlSetup*> next = setup.fleets.source(yaml);
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
  change.moved = moved_nodes(*setup.topology, *(*next)->topology, *map);
  change.from = digest();
  return change;
}

std::string FleetChanges::digest() const { return fmt::format("{:016x}", xxh3(text())); }

void FleetChanges::apply(const NewFleet& next, Answered answered) {
  const std::string& yaml = next.yaml;
  if (Status running = host_.check_running(); !running) return answered(forward_error(running));
  // A request that is repeated finds its own fleet.
  if (!next.from.empty() && next.from != digest() && yaml != text()) {
    return answered(infeasible(
        "the fleet was changed by another call since the difference was looked at; look at it "
        "again with --dry-run"));
  }
  Result<FleetChange> change = change_to(yaml);
  bool fits = change && change->busy.empty();
  if (fits) {
    Status checked = check_change(state(), **state().setup().fleets.source(yaml));
    fits = checked.has_value();
    if (!fits) change = forward_error(checked);
  }
  if (!fits || next.how == FleetApply::kDryRun) return answered(std::move(change));
  change->applied = true;
  if (yaml == text()) {
    return host_.control().after_durable(
        [change = *std::move(change), answered = std::move(answered)] { answered(change); });
  }
  const Topology& before = *state().setup().topology;
  const FleetMap map = *fleet_map(before, *(*state().setup().fleets.source(yaml))->topology);
  for (const NodeId node : map.retired()) followers_.sessions.lose_commands(node);
  host_.control().drop_orders();
  host_.handle(SetFleet{yaml}, next.request_id,
               [change = *std::move(change), answered = std::move(answered)](const Answer& answer) {
                 if (!answer.status) return answered(tl::unexpected(answer.status.error()));
                 answered(change);
               });
  if (text() == yaml) {
    use(map);
    followers_.setup.renewal().add_waiting(state());
  }
  host_.changed();
}

/// Makes everything beside the state that has ids of the fleet follow a change.
void FleetChanges::use(const FleetMap& map) {
  followers_.setup.use(state(), followers_.side.next_fleet());
  followers_.sessions.use(map);
  host_.control().renew_link(host_.now());
  followers_.side.use_next_fleet();
  followers_.holds.take_up_fleet();
  drift_.forget_nodes();
  log_.info(host_.clock().wall(), "fleet changed",
            {{"added", map.added().size()}, {"retired", map.retired().size()}});
}

void FleetChanges::note(const Event& event) {
  if (!changed_before()) return;
  RequestRenewal& renewal = followers_.setup.renewal();
  if (const auto* waits = std::get_if<JobRequeued>(&event)) renewal.add(waits->job);
  // Replicas that an update makes ask for what the first ones were resolved to.
  const auto* made = std::get_if<JobSubmitted>(&event);
  if (made != nullptr && made->submission.request.kind == JobKind::kServe) renewal.add(made->job);
}

void FleetChanges::renew_waiting() {
  if (changed_before()) followers_.setup.renewal().add_waiting(state());
}

void FleetChanges::renew(Instant now) {
  if (!renews()) return;
  LiveSetup& setup = followers_.setup;
  std::vector<ResolveJob> renewed = setup.renewal().take(state(), setup.intake(), now);
  if (!renewed.empty()) {
    log_.info(host_.clock().wall(), "jobs resolved for the changed fleet",
              {{"jobs", renewed.size()}});
  }
  for (ResolveJob& job : renewed) host_.handle(std::move(job));
}

}  // namespace orrery
