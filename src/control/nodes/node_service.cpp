#include "control/nodes/node_service.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace orrery {
namespace {

constexpr const char* kTimeOver = "the time of its hold is over";
constexpr const char* kForeign = "others use it";
constexpr const char* kUnknown = "its resource manager does not say who uses it";

bool is_working(const NodeRecord& record) {
  return record.health == NodeHealth::kReady || record.health == NodeHealth::kSuspect;
}

/// Whether others are known to have the node: the jobs there make room for them.
bool is_used(const NodeRecord::Foreign& foreign) {
  return foreign.claim == ForeignClaim::kTaken && !foreign.who.empty();
}

/// Whether it is not known if others have the node: it takes no new jobs, and the jobs there go on.
bool is_unknown(const NodeRecord::Foreign& foreign) {
  return foreign.claim == ForeignClaim::kTaken && foreign.who.empty();
}

/// Whether jobs may be there that no window has evicted.
bool has_work(const NodeRecord& record) {
  const bool goes_on =
      record.health == NodeHealth::kDraining && !record.drain && is_unknown(record.foreign);
  return is_working(record) || goes_on;
}

std::string reason_of(const Maintenance& plan) {
  return plan.why.empty() ? "maintenance" : "maintenance: " + plan.why;
}

}  // namespace

// --- Commands -----------------------------------------------------------------------------------

void NodeService::on(const DrainNode& command) {
  if (!recorder_.has_node(command.node)) return recorder_.refuse("no such node");
  const NodeRecord& record = state_.node(command.node);
  const bool out = record.health == NodeHealth::kDraining || record.health == NodeHealth::kDrained;
  const bool absent = record.health == NodeHealth::kAbsent;
  if ((out || absent) && record.drain) return drain_further(command);
  if (absent) return drain_absent(command);
  if (!out && record.health != NodeHealth::kReady && record.health != NodeHealth::kSuspect) {
    return recorder_.refuse("only a node that can take work is drained");
  }
  drain(command, DrainedBy::kOperator);
}

void NodeService::on(const ResumeNode& command) {
  if (!recorder_.has_node(command.node)) return recorder_.refuse("no such node");
  if (const char* why = not_ready(command.node)) {
    if (state_.node(command.node).drain) return end_drain(command.node);
    return recorder_.refuse(why);
  }
  leave_windows(command.node);
  parts_.emptying.remove(command.node);
  if (state_.node(command.node).health != NodeHealth::kReady) {
    recorder_.emit(NodeChanged{command.node, NodeHealth::kReady, {}});
  }
}

/// Returns why a node cannot take work, whatever an operator wants; nullptr: it can.
const char* NodeService::not_ready(NodeId node) const {
  const NodeRecord& record = state_.node(node);
  if (record.health == NodeHealth::kLost) {
    return "the node does not answer; it is ready again when it does";
  }
  if (record.is_away()) {
    return "its resource manager does not lend the node; it is ready when it does";
  }
  if (is_used(record.foreign)) return "others use the node; it is ready when they are done";
  if (is_unknown(record.foreign)) {
    return "its resource manager does not say who uses the node; it is ready when it does";
  }
  if (record.loan.until <= recorder_.now()) {
    return "the time is over for which its resource manager lends the node";
  }
  if (record.health == NodeHealth::kJoining) {
    return "the node has not joined yet; it is ready when it does";
  }
  return nullptr;
}

void NodeService::on(const SetSpare& command) {
  if (!recorder_.has_node(command.node)) return recorder_.refuse("no such node");
  if (state_.node(command.node).spare != command.spare) {
    recorder_.emit(SpareSet{command.node, command.spare});
  }
}

void NodeService::on(const SetMaintenance& asked) {
  SetMaintenance command = asked;
  const std::map<std::uint32_t, Maintenance>& windows = state_.closed().windows();
  if (!command.nodes.empty() && command.to <= recorder_.now()) {
    return recorder_.refuse("the maintenance window is over already");
  }
  if (command.window == 0) command.window = windows.empty() ? 1 : windows.rbegin()->first + 1;
  for (const NodeId node : command.nodes) {
    if (!recorder_.has_node(node)) return recorder_.refuse("no such node");
  }
  if (!command.nodes.empty() && command.to <= command.from) {
    return recorder_.refuse("a maintenance window ends after it begins");
  }
  const auto before = windows.find(command.window);
  if (before != windows.end()) {
    const Maintenance plan = before->second;
    close_window(command.window, plan);
  }
  if (command.nodes.empty()) return;
  recorder_.emit(MaintenanceSet{command.window, command.nodes, command.from, command.to,
                                std::move(command.why)});
  set_timers(windows.at(command.window));
}

// --- Drains -------------------------------------------------------------------------------------

// Drains a drained node again: a new reason replaces the old one, and `at_once` evicts.
void NodeService::drain_further(const DrainNode& command) {
  const NodeRecord& record = state_.node(command.node);
  if (!command.why.empty() && command.why != record.drain_why) {
    recorder_.emit(NodeChanged{command.node, record.health, {}, false, command.why});
  }
  if (command.at_once) evict(command.node);
  parts_.emptying.settle();
}

// A node that its resource manager does not lend is drained when it comes.
void NodeService::drain_absent(const DrainNode& command) {
  recorder_.emit(NodeChanged{command.node, NodeHealth::kDraining, {}, false, command.why});
  recorder_.emit(NodeChanged{command.node, NodeHealth::kAbsent, {}});
}

void NodeService::drain(const DrainNode& command, DrainedBy by) {
  const bool window = by == DrainedBy::kWindow;
  recorder_.emit(NodeChanged{command.node, NodeHealth::kDraining, {}, window, command.why});
  parts_.emptying.add(command.node);
  if (command.at_once) evict(command.node);
  parts_.emptying.settle();
}

// Stops the jobs on a drained node; they are queued again.
void NodeService::evict(NodeId node) {
  for (const JobId id : state_.jobs_on(node)) {
    const JobPhase phase = state_.job(id).phase;
    if (!holds_devices(phase) || phase == JobPhase::kStopping) continue;
    parts_.jobs.stop(id, StopReason::kDrained,
                     {FaultLayer::kNone, node, state_.node(node).drain_why});
  }
}

// A node that is also out of service for another reason stays out.
void NodeService::end_drain(NodeId node) {
  const NodeHealth health = state_.node(node).health;
  recorder_.emit(NodeChanged{node, NodeHealth::kReady, {}});
  if (health == NodeHealth::kDraining || health == NodeHealth::kDrained) {
    parts_.emptying.remove(node);
    std::string why = closed_why(node);
    const bool at_once = why != kUnknown;
    if (!why.empty()) drain({node, at_once, std::move(why)}, DrainedBy::kWindow);
  } else {
    recorder_.emit(NodeChanged{node, health, {}});
  }
}

void NodeService::come_back(NodeId node) {
  if (state_.node(node).is_away()) {
    recorder_.emit(NodeLent{node, true, {}, Instant::max(), NodeHealth::kAbsent, {}});
    return;
  }
  if (state_.node(node).health != NodeHealth::kJoining) {
    recorder_.emit(NodeChanged{node, NodeHealth::kJoining, {}});
  }
  const bool drained = state_.node(node).drain;
  std::string why = closed_why(node);
  if (drained || !why.empty()) {
    if (drained) why.clear();
    drain({node, false, std::move(why)}, drained ? DrainedBy::kOperator : DrainedBy::kWindow);
  } else {
    recorder_.emit(NodeChanged{node, NodeHealth::kReady, {}});
  }
}

void NodeService::let_go(NodeId node) {
  parts_.emptying.remove(node);
  come_back(node);
}

// --- Work of others ------------------------------------------------------------------------------

// Jobs leave a node that others take, whose work is never a victim of theirs.
void NodeService::on(const ForeignUse& seen) {
  if (!recorder_.has_node(seen.node)) return recorder_.refuse("no such node");
  const NodeRecord& record = state_.node(seen.node);
  const NodeRecord::Foreign& known = record.foreign;
  if (known.claim == seen.claim && known.until == seen.until && known.who == seen.who) return;
  const bool was_used = is_used(known);
  recorder_.emit(ForeignSet{seen.node, seen.claim, seen.until, seen.who});
  if (seen.claim != ForeignClaim::kTaken) return reopen(seen.node);
  const bool used = is_used(record.foreign);
  if (is_working(record)) {
    return drain({seen.node, used, used ? kForeign : kUnknown}, DrainedBy::kWindow);
  }
  // The node is closed already, but jobs may still run there.
  const bool out = record.health == NodeHealth::kDraining || record.health == NodeHealth::kDrained;
  if (!used || was_used || !out) return;
  if (record.drain_why == kUnknown) {
    recorder_.emit(NodeChanged{seen.node, record.health, {}, true, kForeign});
  }
  evict(seen.node);
}

// --- Maintenance windows ------------------------------------------------------------------------

void NodeService::resume() {
  for (const auto& [window, plan] : state_.closed().windows()) set_timers(plan);
  for (const Closure& closure : state_.closed().list()) {
    if (closure.loan) parts_.timers.set_window(closure.from);
  }
}

void NodeService::set_timers(const Maintenance& plan) {
  parts_.timers.set_window(plan.from);
  parts_.timers.set_window(plan.to);
}

void NodeService::keep_maintenance() {
  const std::map<std::uint32_t, Maintenance> windows = state_.closed().windows();
  for (const auto& [window, plan] : windows) {
    if (plan.to <= recorder_.now()) close_window(window, plan);
  }
  for (const auto& [window, plan] : state_.closed().windows()) {
    if (recorder_.now() < plan.from) continue;
    for (const NodeId node : plan.nodes) {
      if (has_work(state_.node(node))) drain({node, true, reason_of(plan)}, DrainedBy::kWindow);
    }
  }
  end_loans();
}

std::string NodeService::closed_why(NodeId node) const {
  const NodeRecord& record = state_.node(node);
  for (const auto& [window, plan] : state_.closed().windows()) {
    const bool now = plan.from <= recorder_.now() && recorder_.now() < plan.to;
    if (now && std::find(plan.nodes.begin(), plan.nodes.end(), node) != plan.nodes.end()) {
      return reason_of(plan);
    }
  }
  if (is_used(record.foreign)) return kForeign;
  if (is_unknown(record.foreign)) return kUnknown;
  return record.loan.until <= recorder_.now() ? kTimeOver : "";
}

/// A cause for which the node was closed is over.
void NodeService::reopen(NodeId node) {
  const NodeRecord& record = state_.node(node);
  const bool out = record.health == NodeHealth::kDraining || record.health == NodeHealth::kDrained;
  if (out && !record.drain && closed_why(node).empty()) end_drain(node);
}

// A loan that is over ends at once: no job starts there any more, and what fails next is no fault.
void NodeService::lend_until(NodeId node, Instant until) {
  if (until <= recorder_.now()) return end_loan(node);
  if (until != Instant::max()) parts_.timers.set_window(until);
  reopen(node);
}

// Ends the work on lent nodes whose time is over.
void NodeService::end_loans() {
  std::vector<NodeId> over;
  for (const Closure& closure : state_.closed().list()) {
    if (!closure.loan || recorder_.now() < closure.from) continue;
    for (const NodeDevices& at : closure.nodes) over.push_back(at.node);
  }
  for (const NodeId node : over) end_loan(node);
}

void NodeService::end_loan(NodeId node) {
  if (is_working(state_.node(node))) drain({node, true, kTimeOver}, DrainedBy::kWindow);
}

// The window's nodes take work again, unless another window, an operator's drain or a fault
// prevents it.
void NodeService::close_window(std::uint32_t window, const Maintenance& plan) {
  recorder_.emit(MaintenanceSet{window, {}, plan.from, plan.to, {}});
  for (const NodeId node : plan.nodes) reopen(node);
}

// Removes a node from all windows, including future ones.
void NodeService::leave_windows(NodeId node) {
  const std::map<std::uint32_t, Maintenance> windows = state_.closed().windows();
  for (const auto& [window, plan] : windows) {
    std::vector<NodeId> others = plan.nodes;
    if (std::erase(others, node) > 0) {
      recorder_.emit(MaintenanceSet{window, std::move(others), plan.from, plan.to, plan.why});
    }
  }
}

}  // namespace orrery
