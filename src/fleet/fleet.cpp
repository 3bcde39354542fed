#include "fleet/fleet.hpp"

#include <cmath>

#include "base/assert.hpp"

namespace orrery {

Fleet::Fleet(Topology topology)
    : topology_(std::make_shared<const Topology>(std::move(topology))),
      state_(std::make_shared<FleetState>(FleetState{NodeStates(topology_->node_count()),
                                                     FreeCounts(topology_->count_slots()),
                                                     LinkStates(topology_->link_count())})) {
  for (std::uint32_t i = 0; i < topology_->node_count(); ++i) {
    const std::uint16_t devices = topology_->group(NodeId(i)).devices;
    set_node(NodeId(i), {~std::uint64_t{0} >> (64 - devices), NodeHealth::kReady});
  }
}

void Fleet::set_node(NodeId id, NodeState state) {
  ORRERY_ASSERT((state.free_mask >> 1 >> (topology_->group(id).devices - 1)) == 0,
                "free devices are the node's own");
  NodeState& node = state_->nodes.edit(id.value(), generations_);
  for_each_count_change(*topology_, {id, node, state},
                        [&](std::uint32_t slot, std::int32_t devices, std::int32_t nodes) {
                          FreeCount& count = state_->counts.edit(slot, generations_);
                          count.devices += static_cast<std::uint32_t>(devices);
                          count.nodes += static_cast<std::uint32_t>(nodes);
                        });
  node = state;
}

void Fleet::set_health(NodeId id, NodeHealth health) {
  set_node(id, {state_->nodes[id.value()].free_mask, health});
}

void Fleet::set_free(NodeId id, std::uint64_t free_mask) {
  set_node(id, {free_mask, state_->nodes[id.value()].health});
}

void Fleet::set_link(LinkId id, LinkState state) {
  ORRERY_ASSERT(
      state.health >= 0 && state.health <= 1 && state.load >= 0 && std::isfinite(state.load),
      "a link's health and load are fractions");
  state_->links.edit(id.value(), generations_) = state;
}

std::shared_ptr<const FleetSnapshot> Fleet::publish() {
  generations_.collect();
  state_->nodes.collect(generations_);
  state_->counts.collect(generations_);
  state_->links.collect(generations_);
  auto snapshot = std::make_shared<FleetSnapshot>();
  snapshot->topology_ = topology_;
  snapshot->state_ = state_;
  snapshot->nodes_ = state_->nodes.pages();
  snapshot->counts_ = state_->counts.pages();
  snapshot->links_ = state_->links.pages();
  snapshot->lease_ = generations_.publish();
  return snapshot;
}

}  // namespace orrery
