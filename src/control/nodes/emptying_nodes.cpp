#include "control/nodes/emptying_nodes.hpp"

#include <bit>
#include <cstdint>

namespace orrery {

void EmptyingNodes::take_up_fleet() {
  nodes_.clear();
  for (std::uint32_t n = 0; n < state_.setup().topology->node_count(); ++n) {
    const NodeHealth health = state_.node(NodeId(n)).health;
    if (health == NodeHealth::kDraining || health == NodeHealth::kQuarantined) {
      nodes_.insert(NodeId(n));
    }
  }
}

void EmptyingNodes::settle() {
  const FleetView view = state_.fleet().view();
  for (auto it = nodes_.begin(); it != nodes_.end();) {
    const NodeId node = *it;
    const std::uint32_t devices = state_.setup().topology->group(node).devices;
    if (static_cast<std::uint32_t>(std::popcount(view.node(node).free_mask)) < devices) {
      ++it;
      continue;
    }
    it = nodes_.erase(it);
    if (state_.node(node).health == NodeHealth::kQuarantined) {
      recorder_.emit(NodeChanged{node, NodeHealth::kRepairing, {}});
      recorder_.act(RepairNode{node, FaultLayer::kHost});
    } else if (state_.node(node).health == NodeHealth::kDraining) {
      recorder_.emit(NodeChanged{node, NodeHealth::kDrained, {}});
    }
  }
}

}  // namespace orrery
