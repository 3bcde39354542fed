#include "executor/holds/lent_service.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>

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
  for (const NodeId node : pool.lent.nodes) {
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

}  // namespace

bool is_useful(const NodeRecord& node) {
  return node.health == NodeHealth::kReady || node.health == NodeHealth::kSuspect ||
         (node.health == NodeHealth::kJoining && !node.drain);
}

std::vector<std::string> drained_nodes(const HoldPool& pool, const State& state) {
  std::vector<std::string> drained;
  for (const NodeId node : pool.lent.nodes) {
    if (state.node(node).drain) drained.push_back(state.setup().topology->node_name(node));
  }
  return drained;
}

std::vector<std::string> out_of_service(const HoldPool& pool, std::span<const ManagerNode> nodes,
                                        const State& state) {
  std::vector<std::string> out;
  for (const Listed& each : listed(pool, nodes, state)) {
    if (!each.here->out_of_service) continue;
    out.push_back(fmt::format("{} ({})", each.here->name, each.here->reason));
  }
  return out;
}

std::vector<InputKind> follow_service(const HoldPool& pool, std::span<const ManagerNode> nodes,
                                      const State& state) {
  const std::string by = pool.manager + ": ";
  std::vector<InputKind> inputs;
  for (const auto& [node, here] : listed(pool, nodes, state)) {
    const NodeRecord& record = state.node(node);
    const bool by_manager = record.drain && record.drain_why.starts_with(by);
    const bool working =
        record.health == NodeHealth::kReady || record.health == NodeHealth::kSuspect;
    if (here->drained && working) {
      inputs.emplace_back(DrainNode{node, false, by + here->reason});
    } else if (!here->drained && by_manager) {
      inputs.emplace_back(ResumeNode{node});
    }
  }
  return inputs;
}

}  // namespace orrery
