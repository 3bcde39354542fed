#include "control/nodes/node_service.hpp"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace orrery {
namespace {

std::string reason_of(const Maintenance& plan) {
  return plan.why.empty() ? "maintenance" : "maintenance: " + plan.why;
}

}  // namespace

// --- Commands -----------------------------------------------------------------------------------

void NodeService::on(const DrainNode& command) {
  if (!recorder_.has_node(command.node)) return recorder_.refuse("no such node");
  const NodeRecord& record = state_.node(command.node);
  const bool out = record.health == NodeHealth::kDraining || record.health == NodeHealth::kDrained;
  if (out && record.drain) return drain_further(command);
  if (!out && record.health != NodeHealth::kReady && record.health != NodeHealth::kSuspect) {
    return recorder_.refuse("only a node that can take work is drained");
  }
  drain(command, DrainedBy::kOperator);
}

void NodeService::on(const ResumeNode& command) {
  if (!recorder_.has_node(command.node)) return recorder_.refuse("no such node");
  if (state_.node(command.node).health == NodeHealth::kLost) {
    if (state_.node(command.node).drain) return end_drain(command.node);
    return recorder_.refuse("the node does not answer; it is ready again when it does");
  }
  if (state_.node(command.node).health == NodeHealth::kJoining) {
    return recorder_.refuse("the node has not joined yet; it is ready when it does");
  }
  leave_windows(command.node);
  parts_.emptying.remove(command.node);
  if (state_.node(command.node).health != NodeHealth::kReady) {
    recorder_.emit(NodeChanged{command.node, NodeHealth::kReady, {}});
  }
}

void NodeService::on(const SetSpare& command) {
  if (!recorder_.has_node(command.node)) return recorder_.refuse("no such node");
  if (state_.node(command.node).spare != command.spare) {
    recorder_.emit(SpareSet{command.node, command.spare});
  }
}

void NodeService::on(const SetMaintenance& asked) {
  SetMaintenance command = asked;
  const std::map<std::uint32_t, Maintenance>& windows = state_.maintenance();
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
  } else {
    recorder_.emit(NodeChanged{node, health, {}});
  }
}

void NodeService::come_back(NodeId node) {
  if (state_.node(node).health != NodeHealth::kJoining) {
    recorder_.emit(NodeChanged{node, NodeHealth::kJoining, {}});
  }
  const bool drained = state_.node(node).drain;
  if (drained || state_.in_window(node, recorder_.now())) {
    drain({node, false, ""}, drained ? DrainedBy::kOperator : DrainedBy::kWindow);
  } else {
    recorder_.emit(NodeChanged{node, NodeHealth::kReady, {}});
  }
}

void NodeService::let_go(NodeId node) {
  parts_.emptying.remove(node);
  come_back(node);
}

// --- Maintenance windows ------------------------------------------------------------------------

void NodeService::resume() {
  for (const auto& [window, plan] : state_.maintenance()) set_timers(plan);
}

void NodeService::set_timers(const Maintenance& plan) {
  parts_.timers.set_window(plan.from);
  parts_.timers.set_window(plan.to);
}

void NodeService::keep_maintenance() {
  const std::map<std::uint32_t, Maintenance> windows = state_.maintenance();
  for (const auto& [window, plan] : windows) {
    if (plan.to <= recorder_.now()) close_window(window, plan);
  }
  for (const auto& [window, plan] : state_.maintenance()) {
    if (recorder_.now() < plan.from) continue;
    for (const NodeId node : plan.nodes) {
      const NodeHealth health = state_.node(node).health;
      const bool working = health == NodeHealth::kReady || health == NodeHealth::kSuspect;
      if (working) drain({node, true, reason_of(plan)}, DrainedBy::kWindow);
    }
  }
}

// The window's nodes take work again, unless another window, an operator's drain or a fault
// prevents it.
void NodeService::close_window(std::uint32_t window, const Maintenance& plan) {
  recorder_.emit(MaintenanceSet{window, {}, plan.from, plan.to, {}});
  for (const NodeId node : plan.nodes) {
    const NodeRecord& record = state_.node(node);
    const bool out =
        record.health == NodeHealth::kDraining || record.health == NodeHealth::kDrained;
    if (out && !record.drain && !state_.in_window(node, recorder_.now())) end_drain(node);
  }
}

// Removes a node from all windows, including future ones.
void NodeService::leave_windows(NodeId node) {
  const std::map<std::uint32_t, Maintenance> windows = state_.maintenance();
  for (const auto& [window, plan] : windows) {
    std::vector<NodeId> others = plan.nodes;
    if (std::erase(others, node) > 0) {
      recorder_.emit(MaintenanceSet{window, std::move(others), plan.from, plan.to, plan.why});
    }
  }
}

}  // namespace orrery
