#include "fleet/view.hpp"

#include "base/assert.hpp"

namespace orrery {

const NodeState& FleetView::node(NodeId id) const {
  if (overlay_ != nullptr) {
    const auto found = overlay_->nodes_.find(id);
    return found != overlay_->nodes_.end() ? found->second : overlay_->base_.node(id);
  }
  return NodeStates::item(pages_.nodes, id.value());
}

FreeCount FleetView::free(DomainId domain, FleetTypeId type) const {
  const auto types = topology_->types_of(domain);
  for (std::uint32_t i = 0; i < types.size(); ++i) {
    if (types[i] != type) continue;
    const std::uint32_t slot = topology_->domain(domain).first_count + i;
    if (overlay_ == nullptr) return FreeCounts::item(pages_.counts, slot);
    FreeCount count = overlay_->base_.free(domain, type);
    if (const auto delta = overlay_->counts_.find(slot); delta != overlay_->counts_.end()) {
      count.devices += static_cast<std::uint32_t>(delta->second.devices);
      count.nodes += static_cast<std::uint32_t>(delta->second.nodes);
    }
    return count;
  }
  return {};
}

void FleetOverlay::set_node(NodeId id, NodeState state) {
  ORRERY_ASSERT((state.free_mask >> 1 >> (base_.topology().group(id).devices - 1)) == 0,
                "free devices are the node's own");
  const NodeState before = view().node(id);
  for_each_count_change(base_.topology(), {id, before, state},
                        [&](std::uint32_t slot, std::int32_t devices, std::int32_t nodes) {
                          counts_[slot].devices += devices;
                          counts_[slot].nodes += nodes;
                        });
  nodes_[id] = state;
}

}  // namespace orrery
