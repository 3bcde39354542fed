#include "scheduler/reserved.hpp"

namespace orrery {

void Reserved::reset(FleetView now) {
  shadow_.reset(now);
  for (const Slot& slot : slots_) first_[slot.at.node.value()] = kNone;
  slots_.clear();
  first_.resize(now.topology().node_count(), kNone);
}

void Reserved::hide(const NodeDevices& at) {
  NodeState state = shadow_.view().node(at.node);
  if ((state.free_mask & at.devices) == 0) return;
  state.free_mask &= ~at.devices;
  shadow_.set_node(at.node, state);
}

void Reserved::add(const Reservation& reservation) {
  for (const PlacedGang& gang : reservation.gangs) {
    for (const std::vector<NodeDevices>* list : {&gang.allocation.ranks, &gang.allocation.idle}) {
      for (const NodeDevices& at : *list) {
        std::uint32_t& first = first_[at.node.value()];
        slots_.push_back({reservation.job, reservation.start, at, first});
        first = static_cast<std::uint32_t>(slots_.size() - 1);
        hide(at);
      }
    }
  }
}

void Reserved::cover(std::span<const PlacedGang> gangs) {
  for (const PlacedGang& gang : gangs) {
    const auto ranks = [&](const NodeDevices& at) {
      NodeState state = shadow_.view().node(at.node);
      state.free_mask &= ~at.devices;
      detail::move_host(state, gang.host, static_cast<std::uint32_t>(std::popcount(at.devices)));
      shadow_.set_node(at.node, state);
    };
    if (gang.allocation.share < kWholeDevice) {
      const NodeDevices& at = gang.allocation.ranks.front();
      const DeviceId device = detail::shared_device(shadow_.view().topology(), at);
      shadow_.set_shared(device, static_cast<std::uint16_t>(shadow_.view().shared(device) +
                                                            gang.allocation.share));
    }
    for (const NodeDevices& at : gang.allocation.ranks) ranks(at);
    for (const NodeDevices& at : gang.allocation.idle) hide(at);
  }
}

bool Reserved::delays(std::span<const PlacedGang> gangs, Instant end, JobId of) const {
  for (const PlacedGang& gang : gangs) {
    for (const std::vector<NodeDevices>* list : {&gang.allocation.ranks, &gang.allocation.idle}) {
      for (const NodeDevices& at : *list) {
        for (std::uint32_t i = first_[at.node.value()]; i != kNone; i = slots_[i].next) {
          const Slot& slot = slots_[i];
          if (slot.job != of && slot.start < end && (slot.at.devices & at.devices) != 0)
            return true;
        }
      }
    }
  }
  return false;
}

}  // namespace orrery
