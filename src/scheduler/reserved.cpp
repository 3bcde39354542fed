#include "scheduler/reserved.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

namespace orrery {

void Reserved::reset(FleetView now) {
  now_ = now;
  built_ = false;
  counted_ = 0;
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

FleetView Reserved::shadow() {
  if (!built_) {
    built_ = true;
    shadow_.reset(now_);
    for (const Slot& slot : slots_) hide(slot.at);
  }
  return shadow_.view();
}

void Reserved::add(const Reservation& reservation) {
  for (const PlacedGang& gang : reservation.gangs) {
    for (const std::vector<NodeDevices>* list : {&gang.allocation.ranks, &gang.allocation.idle}) {
      for (const NodeDevices& at : *list) add(reservation.job, reservation.start, at);
    }
  }
}

void Reserved::close(const Closure& closure) {
  for (const NodeDevices& at : closure.nodes) add(JobId(), closure.from, at);
}

void Reserved::add(JobId job, Instant start, const NodeDevices& at) {
  std::uint32_t& first = first_[at.node.value()];
  slots_.push_back({job, start, at, first});
  first = static_cast<std::uint32_t>(slots_.size() - 1);
  if (built_) hide(at);
}

void Reserved::cover(std::span<const PlacedGang> gangs) {
  (void)shadow();
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

// A device that several slots keep counts from the first of them on.
void Reserved::count_kept() {
  const Topology& topology = now_.topology();
  kept_.resize(topology.type_count());
  for (std::vector<Kept>& steps : kept_) steps.clear();
  seen_.resize(topology.node_count());
  by_start_.resize(slots_.size());
  std::iota(by_start_.begin(), by_start_.end(), 0);
  std::sort(by_start_.begin(), by_start_.end(),
            [&](std::uint32_t a, std::uint32_t b) { return slots_[a].start < slots_[b].start; });
  for (const std::uint32_t i : by_start_) {
    const NodeDevices& at = slots_[i].at;
    const NodeState& node = now_.node(at.node);
    std::uint64_t& seen = seen_[at.node.value()];
    const std::uint64_t fresh = node.available() > 0 ? node.free_mask & at.devices & ~seen : 0;
    if (fresh == 0) continue;
    const NodeGroup& group = topology.group(at.node);
    std::vector<Kept>& steps = kept_[group.type.value()];
    if (steps.empty() || steps.back().start != slots_[i].start) {
      steps.push_back({slots_[i].start, steps.empty() ? FreeCount() : steps.back().count});
    }
    FreeCount& count = steps.back().count;
    if (seen == 0 && node.available() == group.devices) ++count.nodes;
    count.devices += static_cast<std::uint32_t>(std::popcount(fresh));
    seen |= fresh;
  }
  for (const Slot& slot : slots_) seen_[slot.at.node.value()] = 0;
  counted_ = slots_.size();
}

FreeCount Reserved::kept(FleetTypeId type, Instant end) {
  if (counted_ != slots_.size()) count_kept();
  if (slots_.empty()) return {};
  const std::vector<Kept>& steps = kept_[type.value()];
  const auto after = std::partition_point(steps.begin(), steps.end(),
                                          [&](const Kept& step) { return step.start < end; });
  return after == steps.begin() ? FreeCount() : std::prev(after)->count;
}

}  // namespace orrery
