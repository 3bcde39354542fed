// scheduler/pass/taking.hpp - enters an allocation into a fleet or into an overlay of one, and
// removes it again.
//
// `Fleet` is a Fleet or a FleetOverlay. O(nodes of the allocation x levels).
#pragma once

#include <bit>

#include "base/assert.hpp"
#include "fleet/view.hpp"
#include "scheduler/request/gang.hpp"

namespace orrery {

namespace detail {

/// Adds to the node's used resources what `ranks` ranks need.
inline void move_host(NodeState& state, const HostNeeds& host, std::uint32_t ranks) {
  state.used_cpu += ranks * host.cpu;
  state.used_memory += ranks * host.memory;
  state.used_cxl += ranks * host.cxl;
  state.used_disk += ranks * host.disk;
}

inline DeviceId shared_device(const Topology& topology, const NodeDevices& at) {
  return DeviceId(topology.place(at.node).first_device.value() +
                  static_cast<std::uint32_t>(std::countr_zero(at.devices)));
}

}  // namespace detail

/// Precondition: the devices are free, or shared with room for the share.
template <class Fleet>
void take(Fleet& fleet, const Allocation& allocation, const HostNeeds& host) {
  const bool share = allocation.share < kWholeDevice;
  for (const NodeDevices& at : allocation.ranks) {
    NodeState state = fleet.view().node(at.node);
    if (share) {
      const DeviceId device = detail::shared_device(fleet.view().topology(), at);
      fleet.set_shared(device,
                       static_cast<std::uint16_t>(fleet.view().shared(device) + allocation.share));
    } else {
      ORRERY_ASSERT((state.free_mask & at.devices) == at.devices, "devices are free when taken");
    }
    state.free_mask &= ~at.devices;
    detail::move_host(state, host, static_cast<std::uint32_t>(std::popcount(at.devices)));
    fleet.set_node(at.node, state);
  }
  for (const NodeDevices& at : allocation.idle) {
    NodeState state = fleet.view().node(at.node);
    state.free_mask &= ~at.devices;
    fleet.set_node(at.node, state);
  }
}

/// Precondition: the allocation was taken with the same `host`.
template <class Fleet>
void give_back(Fleet& fleet, const Allocation& allocation, const HostNeeds& host) {
  const bool share = allocation.share < kWholeDevice;
  for (const NodeDevices& at : allocation.ranks) {
    NodeState state = fleet.view().node(at.node);
    bool last = true;
    if (share) {
      const DeviceId device = detail::shared_device(fleet.view().topology(), at);
      const auto left = static_cast<std::uint16_t>(fleet.view().shared(device) - allocation.share);
      fleet.set_shared(device, left);
      last = left == 0;
    } else {
      ORRERY_ASSERT((state.free_mask & at.devices) == 0, "devices are taken when given back");
    }
    if (last) state.free_mask |= at.devices;
    // Unsigned arithmetic wraps: this subtracts.
    detail::move_host(state, host, 0 - static_cast<std::uint32_t>(std::popcount(at.devices)));
    fleet.set_node(at.node, state);
  }
  for (const NodeDevices& at : allocation.idle) {
    NodeState state = fleet.view().node(at.node);
    state.free_mask |= at.devices;
    fleet.set_node(at.node, state);
  }
}

/// Precondition: the allocation was taken with the same `host`. Faster than the general give_back()
/// for consecutive neighbouring nodes.
inline void give_back(FleetOverlay& fleet, const Allocation& allocation, const HostNeeds& host) {
  if (allocation.share < kWholeDevice) {
    give_back<FleetOverlay>(fleet, allocation, host);
    return;
  }
  fleet.reveal(allocation.ranks);
  fleet.reveal(allocation.idle);
  if (!host.any()) return;
  for (const NodeDevices& at : allocation.ranks) {
    NodeState state = fleet.view().node(at.node);
    detail::move_host(state, host, 0 - static_cast<std::uint32_t>(std::popcount(at.devices)));
    fleet.set_node(at.node, state);
  }
}

}  // namespace orrery
