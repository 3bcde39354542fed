#include "executor/managers/lent_service.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace orrery {
namespace {

/// A node of a pool, and what its manager says of it.
struct Listed {
  NodeId node;
  const ManagerNode* here = nullptr;
};

std::vector<Listed> listed(const HoldPool& pool, std::span<const ManagerNode> nodes,
                           const State& state) {
  std::map<std::string, NodeId, std::less<>> ids;
  for (const NodeId node : pool.nodes) {
    ids.emplace(state.setup().topology->node_name(node), node);
  }
  std::vector<Listed> found;
  found.reserve(nodes.size());
  for (const ManagerNode& each : nodes) {
    const auto id = ids.find(each.name);
    if (id != ids.end()) found.push_back({id->second, &each});
  }
  return found;
}

/// Whether the manager has drained the node.
bool is_drained_by(const HoldPool& pool, const NodeRecord& record) {
  return record.drain && record.drain_why.starts_with(pool.manager + ": ");
}

/// Whether a resumption ends the drain of the node and nothing else.
bool is_only_drained(const State& state, NodeId node) {
  const NodeRecord& record = state.node(node);
  if (record.is_away() || record.health == NodeHealth::kLost ||
      record.health == NodeHealth::kJoining) {
    return true;
  }
  if (record.health != NodeHealth::kDraining && record.health != NodeHealth::kDrained) return false;
  const ClosedTimes::Windows& windows = state.closed().windows();
  return std::none_of(windows.begin(), windows.end(), [node](const auto& each) {
    const std::vector<NodeId>& nodes = each.second.nodes;
    return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
  });
}

}  // namespace

bool is_drained(const State& state, NodeId node, Instant now) {
  return state.node(node).drain || state.closed().in_window(node, now);
}

DrainedNodes drained_nodes(const HoldPool& pool, const State& state, Instant now) {
  DrainedNodes drained;
  for (const NodeId node : pool.lent.nodes) {
    if (!is_drained(state, node, now)) continue;
    ++drained.count;
    if (is_drained_by(pool, state.node(node))) continue;
    drained.avoid.push_back(state.setup().topology->node_name(node));
  }
  return drained;
}

std::vector<std::string> out_of_service(const HoldPool& pool, std::span<const ManagerNode> nodes,
                                        const State& state) {
  std::vector<std::string> out;
  std::set<NodeId> missing(pool.nodes.begin(), pool.nodes.end());
  for (const Listed& each : listed(pool, nodes, state)) {
    missing.erase(each.node);
    if (!each.here->out_of_service) continue;
    out.push_back(fmt::format("{} ({})", each.here->name, each.here->reason));
  }
  for (const NodeId node : missing) {
    out.push_back(state.setup().topology->node_name(node) + " (not in Slurm)");
  }
  return out;
}

std::vector<InputKind> follow_service(const HoldPool& pool, std::span<const ManagerNode> nodes,
                                      const State& state) {
  std::vector<InputKind> inputs;
  for (const auto& [node, here] : listed(pool, nodes, state)) {
    const NodeRecord& record = state.node(node);
    const bool working =
        record.health == NodeHealth::kReady || record.health == NodeHealth::kSuspect;
    // Others have a node that is drained for its administrators, too.
    const bool taken = taken_until(record) != Instant();
    if (here->drained && (working || taken)) {
      inputs.emplace_back(
          DrainNode{node, false, fmt::format("{}: {}", pool.manager, here->reason)});
    } else if (!here->drained && is_drained_by(pool, record) && is_only_drained(state, node)) {
      inputs.emplace_back(ResumeNode{node});
    }
  }
  return inputs;
}

}  // namespace orrery
