#include "fleet/fleet.hpp"

namespace orrery {

Fleet::Fleet(Topology topology)
    : topology_(std::make_shared<const Topology>(std::move(topology))),
      state_(std::make_shared<FleetState>(FleetState{
          NodeStates(topology_->node_count()), FreeCounts(topology_->count_cells()),
          LinkStates(topology_->link_count()), DeviceShares(topology_->device_count())})) {
  for (std::uint32_t i = 0; i < topology_->node_count(); ++i) {
    const NodeId node(i);
    for_each_count_row(*topology_, node, [&](std::uint32_t cell) {
      ++state_->counts.edit(cell + CountRow::kNodesWith, generations_);
    });
    set_free(node, ~std::uint64_t{0} >> (64 - topology_->group(node).devices));
  }
}

void Fleet::set_node(NodeId id, const NodeState& state) {
  check_state(*topology_, id, state);
  NodeState& node = state_->nodes.edit(id.value(), generations_);
  move_counts(*topology_, {id, node.available(), state.available()},
              [&](std::uint32_t cell) -> std::uint32_t& {
                return state_->counts.edit(cell, generations_);
              });
  node = state;
}

void Fleet::set_health(NodeId id, NodeHealth health) {
  NodeState state = state_->nodes[id.value()];
  state.health = health;
  set_node(id, state);
}

void Fleet::set_free(NodeId id, std::uint64_t free_mask) {
  NodeState state = state_->nodes[id.value()];
  state.free_mask = free_mask;
  set_node(id, state);
}

void Fleet::set_link(LinkId id, LinkState state) {
  check_state(state);
  state_->links.edit(id.value(), generations_) = state;
}

void Fleet::set_shared(DeviceId id, std::uint16_t thousandths) {
  check_shared(thousandths);
  std::uint16_t& share = state_->shares.edit(id.value(), generations_);
  state_->shared += (thousandths != 0 ? 1U : 0U) - (share != 0 ? 1U : 0U);
  share = thousandths;
}

std::shared_ptr<const FleetSnapshot> Fleet::publish() {
  generations_.collect();
  state_->nodes.collect(generations_);
  state_->counts.collect(generations_);
  state_->links.collect(generations_);
  state_->shares.collect(generations_);
  auto snapshot = std::make_shared<FleetSnapshot>();
  snapshot->topology_ = topology_;
  snapshot->state_ = state_;
  snapshot->nodes_ = state_->nodes.pages();
  snapshot->counts_ = state_->counts.pages();
  snapshot->links_ = state_->links.pages();
  snapshot->shares_ = state_->shares.pages();
  snapshot->shared_ = state_->shared;
  snapshot->lease_ = generations_.publish();
  return snapshot;
}

}  // namespace orrery
