// The life of nodes, and its effects on the jobs that run on them.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "control/core/core.hpp"
#include "scheduler/replace/replacement.hpp"
#include "scheduler/request/job_array.hpp"

namespace orrery {
namespace {

std::string reason_of(const Maintenance& plan) {
  return plan.why.empty() ? "maintenance" : "maintenance: " + plan.why;
}

/// Returns the last place of a job with one gang, from its record; none for other jobs.
std::optional<PlacedGang> last_place(const Job& job, const Topology& topology) {
  const std::vector<RoleRequest>& roles = job.submission->request.roles;
  if (job.placed.size() != 1 || roles.size() != 1 || job.placed.front().empty()) return {};
  const std::vector<NodeDevices>& ranks = job.placed.front();
  const FleetTypeId type = topology.group(ranks.front().node).type;
  std::uint32_t devices = 0;
  for (const NodeDevices& at : ranks) {
    devices += static_cast<std::uint32_t>(std::popcount(at.devices));
  }
  const std::vector<GangOption>& options = roles.front().options;
  for (std::uint32_t i = 0; i < options.size(); ++i) {
    const GangRequest& gang = options[i].gang;
    const bool whole = !gang.exclusive && gang.share == kWholeDevice;
    if (gang.type != type || gang.devices != devices || !whole) continue;
    return PlacedGang{0, i, {.ranks = ranks}, gang.host};
  }
  return {};
}

}  // namespace

// --- Commands -----------------------------------------------------------------------------------

void Core::on(const DrainNode& command) {
  if (!has_node(command.node)) return refuse("no such node");
  const NodeRecord& record = state_.node(command.node);
  const bool out = record.health == NodeHealth::kDraining || record.health == NodeHealth::kDrained;
  if (out && record.drain) return drain_further(command);
  if (!out && record.health != NodeHealth::kReady && record.health != NodeHealth::kSuspect) {
    return refuse("only a node that can take work is drained");
  }
  drain(command, DrainedBy::kOperator);
}

// Drains a drained node again: a new reason replaces the old one, and `at_once` evicts.
void Core::drain_further(const DrainNode& command) {
  const NodeRecord& record = state_.node(command.node);
  if (!command.why.empty() && command.why != record.drain_why) {
    emit(NodeChanged{command.node, record.health, {}, false, command.why});
  }
  if (command.at_once) evict(command.node);
  settle_nodes();
}

void Core::drain(const DrainNode& command, DrainedBy by) {
  const bool window = by == DrainedBy::kWindow;
  emit(NodeChanged{command.node, NodeHealth::kDraining, {}, window, command.why});
  emptying_.insert(command.node);
  if (command.at_once) evict(command.node);
  settle_nodes();
}

/// Stops the jobs on a drained node; they are queued again.
void Core::evict(NodeId node) {
  for (const JobId id : state_.jobs_on(node)) {
    const JobPhase phase = state_.job(id).phase;
    if (!holds_devices(phase) || phase == JobPhase::kStopping) continue;
    stop(id, StopReason::kDrained, {FaultLayer::kNone, node, state_.node(node).drain_why});
  }
}

// Closes windows that are over.
void Core::keep_maintenance() {
  const std::map<std::uint32_t, Maintenance> windows = state_.maintenance();
  for (const auto& [window, plan] : windows) {
    if (plan.to <= now_) close_window(window, plan);
  }
  for (const auto& [window, plan] : state_.maintenance()) {
    if (now_ < plan.from) continue;
    for (const NodeId node : plan.nodes) {
      const NodeHealth health = state_.node(node).health;
      const bool working = health == NodeHealth::kReady || health == NodeHealth::kSuspect;
      if (working) drain({node, true, reason_of(plan)}, DrainedBy::kWindow);
    }
  }
}

// The window's nodes take work again, unless another window, an operator's drain or a fault
// prevents it.
void Core::close_window(std::uint32_t window, const Maintenance& plan) {
  emit(MaintenanceSet{window, {}, plan.from, plan.to, {}});
  for (const NodeId node : plan.nodes) {
    const NodeRecord& record = state_.node(node);
    const bool out =
        record.health == NodeHealth::kDraining || record.health == NodeHealth::kDrained;
    if (out && !record.drain && !state_.in_window(node, now_)) end_drain(node);
  }
}

// Removes a node from all windows, including future ones.
void Core::leave_windows(NodeId node) {
  const std::map<std::uint32_t, Maintenance> windows = state_.maintenance();
  for (const auto& [window, plan] : windows) {
    std::vector<NodeId> others = plan.nodes;
    if (std::erase(others, node) > 0) {
      emit(MaintenanceSet{window, std::move(others), plan.from, plan.to, plan.why});
    }
  }
}

// A node that is also out of service for another reason stays out.
void Core::end_drain(NodeId node) {
  const NodeHealth health = state_.node(node).health;
  emit(NodeChanged{node, NodeHealth::kReady, {}});
  if (health == NodeHealth::kDraining || health == NodeHealth::kDrained) {
    emptying_.erase(node);
  } else {
    emit(NodeChanged{node, health, {}});
  }
}

// The node works again; it takes work unless it is still drained or in a window.
void Core::come_back(NodeId node) {
  if (state_.node(node).health != NodeHealth::kJoining) {
    emit(NodeChanged{node, NodeHealth::kJoining, {}});
  }
  const bool drained = state_.node(node).drain;
  if (drained || state_.in_window(node, now_)) {
    drain({node, false, ""}, drained ? DrainedBy::kOperator : DrainedBy::kWindow);
  } else {
    emit(NodeChanged{node, NodeHealth::kReady, {}});
  }
}

void Core::on(const ResumeNode& command) {
  if (!has_node(command.node)) return refuse("no such node");
  if (state_.node(command.node).health == NodeHealth::kLost) {
    if (state_.node(command.node).drain) return end_drain(command.node);
    return refuse("the node does not answer; it is ready again when it does");
  }
  if (state_.node(command.node).health == NodeHealth::kJoining) {
    return refuse("the node has not joined yet; it is ready when it does");
  }
  leave_windows(command.node);
  emptying_.erase(command.node);
  if (state_.node(command.node).health != NodeHealth::kReady) {
    emit(NodeChanged{command.node, NodeHealth::kReady, {}});
  }
}

void Core::on(const FenceNode& command) {
  if (!has_node(command.node)) return refuse("no such node");
  if (state_.node(command.node).health != NodeHealth::kLost) {
    return refuse("only a lost node is fenced");
  }
  ranks_gone_on(command.node);
}

void Core::on(const SetSpare& command) {
  if (!has_node(command.node)) return refuse("no such node");
  if (state_.node(command.node).spare != command.spare) {
    emit(SpareSet{command.node, command.spare});
  }
}

// --- Observations
// ---------------------------------------------------------------------------------

void Core::on(const NodeJoined& seen) {
  if (!has_node(seen.node)) return refuse("no such node");
  const NodeRecord& record = state_.node(seen.node);
  if (record.boot != seen.boot) {
    const bool first = record.boot == 0;
    if (!first) ranks_gone_on(seen.node);
    emit(NodeBooted{seen.node, seen.boot});
  }
  const NodeHealth health = state_.node(seen.node).health;
  const bool away = health == NodeHealth::kLost || health == NodeHealth::kSuspect ||
                    health == NodeHealth::kJoining;
  if (away) come_back(seen.node);
}

void Core::on(const NodeHeard& seen) {
  if (!has_node(seen.node)) return refuse("no such node");
  const NodeHealth health = state_.node(seen.node).health;
  if (seen.health == NodeHealth::kLost) {
    const bool there = health == NodeHealth::kReady || health == NodeHealth::kSuspect ||
                       health == NodeHealth::kDraining;
    if (!there) return;
    emptying_.erase(seen.node);
    const Blame blame{FaultLayer::kHost, seen.node,
                      fmt::format("{} heartbeats missed", seen.missed)};
    emit(NodeChanged{seen.node, NodeHealth::kLost, blame});
    lose(seen.node, blame);
    return detect_lemon_node(seen.node);
  }
  const bool turns = (seen.health == NodeHealth::kSuspect && health == NodeHealth::kReady) ||
                     (seen.health == NodeHealth::kReady && health == NodeHealth::kSuspect);
  if (turns) emit(NodeChanged{seen.node, seen.health, {}});
}

void Core::on(const NodeFault& seen) {
  if (!has_node(seen.node)) return refuse("no such node");
  if (seen.claimed_by.valid()) return hear_claim(seen);
  const NodeHealth health = state_.node(seen.node).health;
  const Blame blame{seen.layer, seen.node, seen.evidence};
  const bool working = health == NodeHealth::kReady || health == NodeHealth::kSuspect ||
                       health == NodeHealth::kDraining || health == NodeHealth::kDrained ||
                       health == NodeHealth::kLost;
  const bool mend = seen.repair && working;
  const bool window = health == NodeHealth::kDraining && !state_.node(seen.node).drain;
  emit(NodeChanged{seen.node, mend ? NodeHealth::kQuarantined : health, blame, window, {}});
  if (mend) emptying_.insert(seen.node);
  detect_lemon_node(seen.node);
  if (seen.stops_jobs) lose(seen.node, blame);
  settle_nodes();
}

void Core::on(const NodeRepaired& seen) {
  if (!has_node(seen.node)) return refuse("no such node");
  const NodeHealth health = state_.node(seen.node).health;
  if (health != NodeHealth::kRepairing && health != NodeHealth::kQuarantined) return;
  let_go(seen.node);
}

/// Returns a node from quarantine or repair.
void Core::let_go(NodeId node) {
  emptying_.erase(node);
  come_back(node);
}

// --- What follows -------------------------------------------------------------------------------

void Core::lose(NodeId node, const Blame& blame) {
  for (const JobId id : state_.jobs_on(node)) lose_part(id, node, blame);
}

void Core::lose_part(JobId id, NodeId node, const Blame& blame) {
  const Job& job = state_.job(id);
  if (!holds_devices(job.phase)) return;
  if (job.phase == JobPhase::kStopping) return finish_if_gone(id);
  if (replace_part(id, node) || shrink_away(id, node)) return;
  stop(id, StopReason::kInfra, blame);
  finish_if_gone(id);  // if the job had no other node, no further report may arrive
}

// Whether a job can be resized while running: its ranks survive the loss of some and accept others.
bool Core::can_resize_running(JobId id) const {
  const RunningJob& run = state_.running(id);
  if (run.gangs.size() != 1 || !state_.job(id).up) return false;
  const PlacedGang& gang = run.gangs.front();
  return run.request->roles[gang.role].elastic() && gang.allocation.share >= kWholeDevice;
}

std::vector<NodeId> Core::ready_spares() const {
  std::vector<NodeId> ready;
  for (const NodeId spare : state_.spares()) {
    if (state_.node(spare).health == NodeHealth::kReady) ready.push_back(spare);
  }
  return ready;
}

// Spares become ordinary nodes before a job is placed on them.
void Core::take_spares(std::span<const SpareTaken> spares) {
  for (const SpareTaken& taken : spares) emit(SpareSet{taken.spare, false});
}

// The nodes that spares replace become spares once they are repaired or free.
void Core::return_spares(std::span<const SpareTaken> spares) {
  for (const SpareTaken& taken : spares) emit(SpareSet{taken.lost, true});
}

// Continues an elastic gang with its remaining nodes while another node replaces the lost one.
bool Core::replace_part(JobId id, NodeId node) {
  const RunningJob& run = state_.running(id);
  if (!can_resize_running(id) || keeps_distance(*run.request)) return false;
  const std::vector<NodeId> spares = ready_spares();
  const Situation s = state_.situation(now_);
  const auto whole = resize_with_replacement({s, state_.policy(), spares}, run, node);
  if (!whole) return false;
  FleetOverlay fleet(s.fleet);
  make_ready(fleet, whole->spares);
  if (!why_stale(whole->decision, fleet.view()).empty()) return false;
  take_spares(whole->spares);
  return_spares(whole->spares);
  go_on_as(whole->decision);
  return true;
}

// Continues an elastic gang at the largest of its sizes that fits on its remaining nodes.
bool Core::shrink_away(JobId id, NodeId node) {
  if (!can_resize_running(id)) return false;
  const Situation s = state_.situation(now_);
  const auto smaller = resize_without({s, state_.policy(), {}}, state_.running(id), node);
  if (smaller) go_on_as(*smaller);
  return smaller.has_value();
}

// Restarts jobs that found no replacement for a lost node, by priority: they may take spares, and
// repaired nodes before a pass gives these to other jobs.
void Core::restart_waiting() {
  std::vector<JobId> jobs;
  for (const auto& [id, place] : places_) {
    if (state_.job(id).phase == JobPhase::kQueued) jobs.push_back(id);
  }
  const auto priority = [this](JobId id) { return state_.job(id).submission->request.priority; };
  std::stable_sort(jobs.begin(), jobs.end(),
                   [&](JobId a, JobId b) { return priority(a) > priority(b); });
  for (const JobId id : jobs) (void)restart_at_its_place(id, Restart::kAfterWait);
}

// A restarted core begins without `places_`; this fills them from the records of the jobs.
void Core::recall_places() {
  for (const Job& job : state_.all_jobs()) recall_place(job);
}

void Core::recall_place(const Job& job) {
  if (ended(job.phase) || job.attempt == 0 || job.stop != StopReason::kInfra) return;
  if (holds_devices(job.phase) && job.phase != JobPhase::kStopping) return;
  std::optional<PlacedGang> place = last_place(job, *state_.setup().topology);
  if (place) places_[job.id] = {*std::move(place)};
}

// Restarts a job that lost a node to a fault where it was, with other nodes in place of the missing
// ones. If there are none the job waits, and is tried again whenever nodes become free, unless a
// pass starts it elsewhere.
bool Core::restart_at_its_place(JobId id, Restart restart) {
  const auto place = places_.find(id);
  const Job& job = state_.job(id);
  if (place == places_.end() || job.phase != JobPhase::kQueued) return false;
  const std::vector<NodeId> spares = ready_spares();
  const Situation s = state_.situation(now_);
  const auto again = restart_in_place(
      {s, state_.policy(), spares},
      {id, &job.submission->request, job.submitted, job.done, job.attained}, place->second);
  if (!again) return false;
  FleetOverlay fleet(s.fleet);
  make_ready(fleet, again->spares);
  if (!why_stale(again->decision, fleet.view()).empty()) return false;
  std::optional<RestartKind> kind;
  if (restart == Restart::kAtOnce) {
    const bool warm = again->spares.size() == again->replaced;
    kind = warm ? RestartKind::kWarmSpares : RestartKind::kCold;
  }
  take_spares(again->spares);
  start(again->decision, kind);
  return_spares(again->spares);
  return true;
}

// No rank of any attempt runs on the node any more: it rebooted, or an operator guarantees it.
void Core::ranks_gone_on(NodeId node) {
  std::vector<std::pair<JobId, std::uint32_t>> ghosts;
  for (const Ghost& ghost : state_.ghosts()) {
    if (ghost.at.node == node) ghosts.emplace_back(ghost.job, ghost.attempt);
  }
  for (const auto& [job, attempt] : ghosts) free_devices({job, attempt, {node}});
  for (const auto& [job, attempt] : ghosts) {
    if (attempt == state_.job(job).attempt) finish_if_gone(job);
  }
  for (const JobId id : state_.jobs_on(node)) {
    if (state_.job(id).phase != JobPhase::kStopping) {
      lose_part(id, node, {FaultLayer::kHost, node, "the node started anew"});
    }
    if (state_.job(id).phase != JobPhase::kStopping) continue;
    free_devices({id, state_.job(id).attempt, {node}});
    finish_if_gone(id);
  }
}

// Settles draining and quarantined nodes that are now empty.
void Core::settle_nodes() {
  const FleetView view = state_.fleet().view();
  for (auto it = emptying_.begin(); it != emptying_.end();) {
    const NodeId node = *it;
    const std::uint32_t devices = state_.setup().topology->group(node).devices;
    if (static_cast<std::uint32_t>(std::popcount(view.node(node).free_mask)) < devices) {
      ++it;
      continue;
    }
    it = emptying_.erase(it);
    if (state_.node(node).health == NodeHealth::kQuarantined) {
      emit(NodeChanged{node, NodeHealth::kRepairing, {}});
      act(RepairNode{node, FaultLayer::kHost});
    } else if (state_.node(node).health == NodeHealth::kDraining) {
      emit(NodeChanged{node, NodeHealth::kDrained, {}});
    }
  }
}

// A lemon has more faults within the window than three standard deviations above the number
// expected by chance.
void Core::detect_lemon_node(NodeId node) {
  const ControlTiming& timing = state_.setup().timing;
  const NodeRecord& record = state_.node(node);
  const double chance =
      state_.setup().failures_per_node_second * timing.lemon_window.count_seconds();
  const auto faults = static_cast<std::uint32_t>(record.faults.size());
  const bool many = faults >= timing.lemon_faults && faults > chance + 3 * std::sqrt(chance);
  if (many) emit(LemonFound{node, faults});
}

}  // namespace orrery
