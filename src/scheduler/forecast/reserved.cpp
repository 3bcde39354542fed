#include "scheduler/forecast/reserved.hpp"

#include <algorithm>
#include <bit>

namespace orrery {

void Reserved::reset(FleetView now) {
  now_ = now;
  any_ = false;
  loans_ = false;
  built_ = false;
  counted_ = 0;
  for (const Slot& slot : slots_) first_[slot.at.node.value()] = kNone;
  slots_.clear();
  jobs_.clear();
  kept_.resize(now.topology().type_count());
  for (std::vector<Kept>& steps : kept_) steps.clear();
  first_.resize(now.topology().node_count(), kNone);
}

FleetView Reserved::shadow() {
  if (!built_) {
    built_ = true;
    shadow_.reset(now_);
    hidden_.clear();
    for (const Slot& slot : slots_) hidden_.push_back(slot.at);
    shadow_.hide(hidden_);
  }
  return shadow_.view();
}

FleetView Reserved::beside(FleetView free, JobId of, Instant end) {
  hidden_.clear();
  for (const Slot& slot : slots_) {
    if (binds(slot, end) && slot.job != of) hidden_.push_back(slot.at);
  }
  if (hidden_.empty()) return free;
  if (hidden_.size() == slots_.size()) return shadow();
  beside_.reset(free);
  beside_.hide(hidden_);
  return beside_.view();
}

bool Reserved::has(JobId job) const { return std::binary_search(jobs_.begin(), jobs_.end(), job); }

void Reserved::add(const Reservation& reservation) {
  const auto at = std::lower_bound(jobs_.begin(), jobs_.end(), reservation.job);
  if (at == jobs_.end() || *at != reservation.job) jobs_.insert(at, reservation.job);
  for (const PlacedGang& gang : reservation.gangs) {
    const Slot slot{reservation.job, reservation.start, {}};
    add(slot, gang.allocation.ranks);
    add(slot, gang.allocation.idle);
  }
}

void Reserved::close(const Closure& closure) {
  loans_ = loans_ || closure.loan;
  add(Slot{.job = JobId(), .start = closure.from, .at = {}, .loan = closure.loan}, closure.nodes);
}

// Devices that no job could get anyway need not be hidden: most of what reservations hold is busy.
void Reserved::add(const Slot& slot, std::span<const NodeDevices> nodes) {
  any_ = true;
  const std::size_t before = slots_.size();
  for (const NodeDevices& at : nodes) {
    if (!now_.has_room(at)) continue;
    std::uint32_t& first = first_[at.node.value()];  // so `next` is always an earlier one
    slots_.push_back({slot.job, slot.start, at, first, slot.loan});
    first = static_cast<std::uint32_t>(slots_.size() - 1);
  }
  if (!built_ || slots_.size() == before) return;
  hidden_.clear();
  for (const Slot& added : std::span(slots_).subspan(before)) hidden_.push_back(added.at);
  shadow_.hide(hidden_);
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
    const bool share = gang.allocation.share < kWholeDevice;
    if (share) {  // of a device that is reserved, too: nothing is left of it as it is
      const NodeDevices& at = gang.allocation.ranks.front();
      const DeviceId device = detail::shared_device(shadow_.view().topology(), at);
      const int used = shadow_.view().shared(device) + gang.allocation.share;
      shadow_.set_shared(device, static_cast<std::uint16_t>(std::min<int>(used, kShareMax)));
    }
    if (share || gang.host.any()) {
      for (const NodeDevices& at : gang.allocation.ranks) ranks(at);
    } else {
      shadow_.hide(gang.allocation.ranks);
    }
    shadow_.hide(gang.allocation.idle);
  }
}

bool Reserved::delays(std::span<const PlacedGang> gangs, Instant end, JobId of) const {
  for (const PlacedGang& gang : gangs) {
    for (const std::vector<NodeDevices>* list : {&gang.allocation.ranks, &gang.allocation.idle}) {
      for (const NodeDevices& at : *list) {
        for (std::uint32_t i = first_[at.node.value()]; i != kNone; i = slots_[i].next) {
          const Slot& slot = slots_[i];
          if (slot.job != of && binds(slot, end) && (slot.at.devices & at.devices) != 0)
            return true;
        }
      }
    }
  }
  return false;
}

FreeCount& Reserved::kept_from(FleetTypeId type, Instant start) {
  std::vector<Kept>& steps = kept_[type.value()];
  auto at = std::lower_bound(steps.begin(), steps.end(), start,
                             [](const Kept& step, Instant when) { return step.start < when; });
  if (at == steps.end() || at->start != start) at = steps.insert(at, {start, {}});
  return at->count;
}

// A device that several reservations keep counts from the first of them on, and so does a node.
void Reserved::count(const Slot& slot, std::span<const Slot> before) {
  const NodeState& node = now_.node(slot.at.node);
  const std::uint64_t free = node.available() > 0 ? node.free_mask & slot.at.devices : 0;
  if (free == 0) return;
  const NodeGroup& group = now_.topology().group(slot.at.node);
  const auto earliest = [&](std::uint64_t devices) {
    Instant start = Instant::max();
    for (std::uint32_t i = slot.next; i != kNone; i = before[i].next) {
      if ((before[i].at.devices & devices) != 0) start = std::min(start, before[i].start);
    }
    return start;
  };
  const auto move = [&](std::uint32_t FreeCount::* what, Instant from) {
    if (slot.start >= from) return;
    ++(kept_from(group.type, slot.start).*what);
    if (from != Instant::max()) --(kept_from(group.type, from).*what);
  };
  if (node.available() == group.devices) move(&FreeCount::nodes, earliest(node.free_mask));
  if (earliest(free) == Instant::max()) {
    kept_from(group.type, slot.start).devices += static_cast<std::uint32_t>(std::popcount(free));
    return;
  }
  for (std::uint64_t left = free; left != 0; left &= left - 1) {
    move(&FreeCount::devices, earliest(left & (~left + 1)));
  }
}

FreeCount Reserved::kept(FleetTypeId type, Instant end) {
  if (loans_ && end == Instant::max()) return {};
  for (; counted_ < slots_.size(); ++counted_) {
    count(slots_[counted_], std::span(slots_).first(counted_));
  }
  FreeCount kept;
  for (const Kept& step : kept_[type.value()]) {
    if (step.start >= end) break;
    kept.devices += step.count.devices;
    kept.nodes += step.count.nodes;
  }
  return kept;
}

}  // namespace orrery
