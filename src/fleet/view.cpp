#include "fleet/view.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/assert.hpp"

namespace orrery {

bool FleetView::has_room(const NodeDevices& at) const {
  if ((node(at.node).free_mask & at.devices) != 0) return true;
  const std::uint32_t first = topology_->place(at.node).first_device.value();
  for (std::uint64_t left = at.devices; left != 0; left &= left - 1) {
    if (shared(DeviceId(first + static_cast<std::uint32_t>(std::countr_zero(left)))) != 0)
      return true;
  }
  return false;
}

FreeCount FleetView::free(DomainId domain, FleetTypeId type) const {
  const auto cell = topology_->count_row(domain, type);
  if (!cell) return {};
  const std::uint32_t* row = &FreeCounts::item(pages_.counts, *cell);
  return {row[CountRow::kDevices], row[CountRow::kWholeNodes]};
}

std::span<const std::uint32_t> FleetView::nodes_by_available(DomainId domain,
                                                             FleetTypeId type) const {
  const auto cell = topology_->count_row(domain, type);
  if (!cell) return {};
  return {&FreeCounts::item(pages_.counts, *cell + CountRow::kNodesWith),
          topology_->node_devices_max(type) + 1};
}

std::uint32_t FleetView::nodes_with(DomainId domain, FleetTypeId type, std::uint32_t k) const {
  const auto nodes = nodes_by_available(domain, type);
  return k < nodes.size() ? nodes[k] : 0;
}

std::uint32_t FleetView::units(DomainId domain, FleetTypeId type, std::uint32_t unit) const {
  ORRERY_ASSERT(unit >= 1, "a unit has a device");
  if (unit == 1) return free(domain, type).devices;
  const auto nodes = nodes_by_available(domain, type);
  std::uint32_t units = 0;
  std::uint32_t in_one = 0;  // units of a node with the k's of a multiple of the unit
  for (std::size_t first = unit; first < nodes.size(); first += unit) {
    ++in_one;
    const std::size_t end = std::min(first + unit, nodes.size());
    for (std::size_t k = first; k < end; ++k) units += nodes[k] * in_one;
  }
  return units;
}

FleetOverlay::FleetOverlay(FleetView base) : topology_(&base.topology()) { reset(base); }

void FleetOverlay::reset(FleetView base) {
  topology_ = &base.topology();
  nodes_.reset(base.pages().nodes, topology_->node_count());
  counts_.reset(base.pages().counts, topology_->count_cells());
  links_.reset(base.pages().links, topology_->link_count());
  shares_.reset(base.pages().shares, topology_->device_count());
}

void FleetOverlay::set_node(NodeId id, const NodeState& state) {
  check_state(*topology_, id, state);
  NodeState& node = nodes_.edit(id.value());
  move_counts_of({id, node.available(), state.available()}, 1);
  node = state;
}

void FleetOverlay::move_counts_of(const AvailableChange& change, std::uint32_t nodes) {
  move_counts(*topology_, change, nodes,
              [&](std::uint32_t cell) -> std::uint32_t& { return counts_.edit(cell); });
}

// Most of a gang's nodes change as their neighbours do, and are counted together.
void FleetOverlay::hide(std::span<const NodeDevices> devices) {
  AvailableChange like;
  std::uint32_t nodes = 0;
  for (const NodeDevices& at : devices) {
    const std::uint64_t free = view().node(at.node).free_mask & at.devices;
    if (free != at.devices) fill_shared({at.node, at.devices & ~free});
    if (free == 0) continue;
    NodeState& node = nodes_.edit(at.node.value());
    const std::uint32_t from = node.available();
    node.free_mask &= ~at.devices;
    const AvailableChange change{at.node, from, node.available()};
    const bool same = nodes > 0 && change.from == like.from && change.to == like.to &&
                      topology_->place(change.id).rack == topology_->place(like.id).rack &&
                      &topology_->group(change.id) == &topology_->group(like.id);
    if (!same) {
      if (nodes > 0) move_counts_of(like, nodes);
      like = change;
      nodes = 0;
    }
    ++nodes;
  }
  if (nodes > 0) move_counts_of(like, nodes);
}

void FleetOverlay::fill_shared(const NodeDevices& busy) {
  const std::uint32_t first = topology_->place(busy.node).first_device.value();
  for (std::uint64_t left = busy.devices; left != 0; left &= left - 1) {
    const std::uint32_t device = first + static_cast<std::uint32_t>(std::countr_zero(left));
    if (DeviceShares::item(shares_.directory(), device) != 0) shares_.edit(device) = kShareMax;
  }
}

void FleetOverlay::set_link(LinkId id, LinkState state) {
  check_state(state);
  links_.edit(id.value()) = state;
}

void FleetOverlay::set_shared(DeviceId id, std::uint16_t thousandths) {
  check_shared(thousandths);
  shares_.edit(id.value()) = thousandths;
}

void check_state(const Topology& topology, NodeId id, const NodeState& state) {
  ORRERY_ASSERT((state.free_mask >> 1 >> (topology.group(id).devices - 1)) == 0,
                "free devices are the node's own");
}

void check_state(LinkState state) {
  ORRERY_ASSERT(
      state.health >= 0 && state.health <= 1 && state.load >= 0 && std::isfinite(state.load),
      "a link's health and load are fractions");
}

void check_shared(std::uint16_t thousandths) {
  ORRERY_ASSERT(thousandths <= kShareMax, "a device is shared up to twice");
}

}  // namespace orrery
