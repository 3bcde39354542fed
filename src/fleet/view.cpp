#include "fleet/view.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/assert.hpp"

namespace orrery {
namespace {

/// Collects equal changes of consecutive nodes: a domain's counts are updated when a node outside
/// of it follows, and its nodes are then added to those of the domain above it.
class CountClimb {
 public:
  CountClimb(const Topology& topology, CowOverlay<FreeCounts>& counts)
      : topology_(topology), counts_(counts) {}

  void add(const AvailableChange& change) {
    const bool alike = depth_ > 0 && change.from == like_.from && change.to == like_.to &&
                       &topology_.group(change.id) == &topology_.group(like_.id);
    if (!alike) finish();
    const DomainId rack = topology_.place(change.id).rack;
    if (depth_ == 0 || path_[0].domain != rack) go_to(rack);
    like_ = change;
    ++path_[0].nodes;
  }

  void finish() {
    for (std::size_t i = 0; i < depth_; ++i) leave(i);
    depth_ = 0;
  }

 private:
  struct Step {
    DomainId domain;
    std::uint32_t nodes = 0;  ///< changed nodes in it that are not counted yet
  };

  void leave(std::size_t i) {
    const std::uint32_t cell = count_row_of(topology_, path_[i].domain, like_.id);
    move_counts(&counts_.edit(cell), topology_.group(like_.id).devices, like_, path_[i].nodes);
    if (i + 1 < depth_) path_[i + 1].nodes += path_[i].nodes;
  }

  // Leaves domains up to one that also contains the rack. All paths have equal depth.
  void go_to(DomainId rack) {
    std::size_t i = 0;
    for (DomainId at = rack; at.valid(); at = topology_.domain(at).parent, ++i) {
      if (i < depth_ && path_[i].domain == at) return;
      if (i < depth_) leave(i);
      path_[i] = {at, 0};
    }
    depth_ = i;
  }

  const Topology& topology_;
  CowOverlay<FreeCounts>& counts_;
  AvailableChange like_;
  std::array<Step, static_cast<std::size_t>(Level::kRack) + 1> path_;  ///< rack first
  std::size_t depth_ = 0;
};

}  // namespace

bool FleetView::has_room(const NodeDevices& at) const {
  if ((node(at.node).free_mask & at.devices) != 0) return true;
  if (!any_shared()) return false;
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
  std::uint32_t in_one = 0;  // units of a node with k available devices
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
  shared_ = *base.pages().shared;
}

void FleetOverlay::set_node(NodeId id, const NodeState& state) {
  check_state(*topology_, id, state);
  NodeState& node = nodes_.edit(id.value());
  move_counts(*topology_, {id, node.available(), state.available()},
              [&](std::uint32_t cell) -> std::uint32_t& { return counts_.edit(cell); });
  node = state;
}

// Most of a gang's nodes change like their neighbours, so a domain is updated once for consecutive
// nodes in it.
template <class Edit>
void FleetOverlay::edit_free(std::span<const NodeDevices> devices, const Edit& edit) {
  CountClimb climb(*topology_, counts_);
  for (const NodeDevices& at : devices) {
    const std::uint64_t before = view().node(at.node).free_mask;
    const std::uint64_t after = edit(before, at.devices);
    if (after == before) continue;
    NodeState& node = nodes_.edit(at.node.value());
    const std::uint32_t from = node.available();
    node.free_mask = after;
    if (from != node.available()) climb.add({at.node, from, node.available()});
  }
  climb.finish();
}

void FleetOverlay::hide(std::span<const NodeDevices> devices) {
  if (shared_ > 0) {
    for (const NodeDevices& at : devices) fill_shared(at);
  }
  edit_free(devices, [](std::uint64_t free, std::uint64_t hidden) { return free & ~hidden; });
}

void FleetOverlay::reveal(std::span<const NodeDevices> devices) {
  edit_free(devices, [](std::uint64_t free, std::uint64_t revealed) {
    ORRERY_ASSERT((free & revealed) == 0, "devices are taken when given back");
    return free | revealed;
  });
}

void FleetOverlay::fill_shared(const NodeDevices& at) {
  const std::uint32_t first = topology_->place(at.node).first_device.value();
  for (std::uint64_t left = at.devices; left != 0; left &= left - 1) {
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
  std::uint16_t& share = shares_.edit(id.value());
  shared_ += (thousandths != 0 ? 1U : 0U) - (share != 0 ? 1U : 0U);
  share = thousandths;
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
