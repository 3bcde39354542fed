#include "scheduler/moves/repack.hpp"

#include <algorithm>
#include <bit>

namespace orrery {
namespace {

constexpr std::uint32_t kNoSpot = std::numeric_limits<std::uint32_t>::max();

/// A place of the requested level.
struct Spot {
  NodeRun nodes;
  FleetTypeId type;  ///< of its first node
  std::uint32_t devices = 0;
  std::uint32_t used = 0;
  std::vector<std::uint32_t> gangs;  ///< movable ones that hold something here
  bool whole = false;
  bool fixed = false;    ///< can never be emptied: a node is not ready, or a device not movable
  bool entered = false;  ///< a gang was moved here
};

class Repacker {
 public:
  Repacker(const FleetView& view, std::span<const MovableGang> movable, const RepackTerms& terms,
           Placer& placer)
      : movable_(movable),
        terms_(terms),
        placer_(placer),
        spot_of_(view.topology().node_count(), kNoSpot),
        moved_(movable.size()),
        now_(view) {
    find_spots();
    assign_gangs();
  }

  RepackPlan run();

 private:
  /// Closed: no gang may be moved there.
  enum class Door : std::uint8_t { kOpen, kClosed };

  void find_spots();
  void measure(Spot& spot) const;
  void assign_gangs();
  void set_door(const Spot& spot, Door door);
  [[nodiscard]] std::int64_t cost_of(const Spot& spot) const;
  [[nodiscard]] std::int64_t gain_of(const Spot& spot) const {
    return terms_.gain_per_device * spot.devices;
  }
  [[nodiscard]] bool worth_it(const Spot& spot) const {
    return !spot.whole && !spot.fixed && !spot.entered && gain_of(spot) > cost_of(spot);
  }
  [[nodiscard]] std::vector<std::uint32_t> candidates(FleetTypeId type) const;
  [[nodiscard]] std::size_t emptied_at_most(FleetTypeId type,
                                            std::span<const std::uint32_t> order) const;
  void empty_some(FleetTypeId type);
  [[nodiscard]] bool empty(Spot& spot);
  void undo(std::size_t moves);
  void mark_entered(const Allocation& allocation);

  std::span<const MovableGang> movable_;
  const RepackTerms& terms_;
  Placer& placer_;
  std::vector<Spot> spots_;
  std::vector<std::uint32_t> spot_of_;  ///< by node
  std::vector<bool> moved_;             ///< by gang
  FleetOverlay now_;  ///< with the moves so far; nodes of closed places appear as draining
  RepackPlan plan_;
};

void Repacker::find_spots() {
  for (const Place& place : placer_.tree().places()) {
    if (!place.is(terms_.level)) continue;
    Spot& spot = spots_.emplace_back();
    spot.nodes = place.nodes;
    spot.type = now_.view().topology().group(place.nodes.first).type;
    measure(spot);
    for (std::uint32_t i = 0; i < place.nodes.count; ++i) {
      spot_of_[place.nodes.first.value() + i] = static_cast<std::uint32_t>(spots_.size() - 1);
    }
  }
}

void Repacker::measure(Spot& spot) const {
  const Topology& topology = now_.view().topology();
  for (std::uint32_t i = 0; i < spot.nodes.count; ++i) {
    const NodeId node(spot.nodes.first.value() + i);
    const NodeGroup& group = topology.group(node);
    const NodeState& state = now_.view().node(node);
    spot.devices += group.devices;
    spot.used += group.devices - state.available();
    spot.fixed = spot.fixed || group.type != spot.type || state.health != NodeHealth::kReady;
  }
  spot.whole = spot.used == 0 && !spot.fixed && spot.devices > 0;
}

/// Assigns gangs to the places they lie in; a place with devices in use by anything else is fixed.
void Repacker::assign_gangs() {
  std::vector<std::uint64_t> held(spot_of_.size());
  for (std::uint32_t g = 0; g < movable_.size(); ++g) {
    const auto enter = [&](const NodeDevices& at) {
      held[at.node.value()] |= at.devices;
      const std::uint32_t spot = spot_of_[at.node.value()];
      if (spot == kNoSpot) return;
      std::vector<std::uint32_t>& gangs = spots_[spot].gangs;
      if (gangs.empty() || gangs.back() != g) gangs.push_back(g);
    };
    const Allocation& allocation = *movable_[g].held.allocation;
    std::for_each(allocation.ranks.begin(), allocation.ranks.end(), enter);
    std::for_each(allocation.idle.begin(), allocation.idle.end(), enter);
  }
  for (Spot& spot : spots_) {
    std::uint32_t movable = 0;
    for (std::uint32_t i = 0; i < spot.nodes.count; ++i) {
      movable += static_cast<std::uint32_t>(std::popcount(held[spot.nodes.first.value() + i]));
    }
    spot.fixed = spot.fixed || movable != spot.used;
  }
}

void Repacker::set_door(const Spot& spot, Door door) {
  for (std::uint32_t i = 0; i < spot.nodes.count; ++i) {
    const NodeId node(spot.nodes.first.value() + i);
    NodeState state = now_.view().node(node);
    state.health = door == Door::kOpen ? NodeHealth::kReady : NodeHealth::kDraining;
    now_.set_node(node, state);
  }
}

std::int64_t Repacker::cost_of(const Spot& spot) const {
  std::int64_t cost = 0;
  for (const std::uint32_t gang : spot.gangs) cost += moved_[gang] ? 0 : movable_[gang].cost;
  return cost;
}

/// Places worth emptying, the least full first.
std::vector<std::uint32_t> Repacker::candidates(FleetTypeId type) const {
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < spots_.size(); ++i) {
    if (spots_[i].type == type && worth_it(spots_[i])) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return spots_[a].used < spots_[b].used;
  });
  return order;
}

/// The number of these places whose gangs have room elsewhere, by the number of devices alone.
std::size_t Repacker::emptied_at_most(FleetTypeId type,
                                      std::span<const std::uint32_t> order) const {
  std::uint64_t room = 0;
  for (const Spot& spot : spots_) {
    if (spot.type == type && !spot.whole) room += spot.devices - spot.used;
  }
  std::size_t count = 0;
  std::uint64_t used = 0;
  for (; count < order.size() && count < terms_.wanted; ++count) {
    const Spot& spot = spots_[order[count]];
    room -= spot.devices - spot.used;
    used += spot.used;
    if (used > room) break;
  }
  return count;
}

void Repacker::mark_entered(const Allocation& allocation) {
  const auto mark = [&](const NodeDevices& at) {
    const std::uint32_t spot = spot_of_[at.node.value()];
    if (spot != kNoSpot) spots_[spot].entered = true;
  };
  std::for_each(allocation.ranks.begin(), allocation.ranks.end(), mark);
  std::for_each(allocation.idle.begin(), allocation.idle.end(), mark);
}

/// Reverts the last moves.
void Repacker::undo(std::size_t moves) {
  for (; moves > 0; --moves) {
    const GangMove& move = plan_.moves.back();
    const HeldGang& held = movable_[move.gang].held;
    give_back(now_, move.to, held.host);
    take(now_, *held.allocation, held.host);
    moved_[move.gang] = false;
    plan_.moves.pop_back();
  }
}

/// Moves every gang of a closed place elsewhere, or none.
bool Repacker::empty(Spot& spot) {
  const std::size_t before = plan_.moves.size();
  const std::int64_t cost = cost_of(spot);
  std::vector<std::uint32_t> order;
  for (const std::uint32_t gang : spot.gangs) {
    if (!moved_[gang]) order.push_back(gang);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return movable_[a].request->devices > movable_[b].request->devices;
  });
  for (const std::uint32_t g : order) {
    const MovableGang& gang = movable_[g];
    AllocationOrRefusal to = placer_.place(now_.view(), *gang.request);
    if (!to) {
      undo(plan_.moves.size() - before);
      return false;
    }
    take(now_, *to, gang.held.host);
    give_back(now_, *gang.held.allocation, gang.held.host);
    moved_[g] = true;
    plan_.moves.push_back({g, *std::move(to)});
  }
  for (std::size_t i = before; i < plan_.moves.size(); ++i) mark_entered(plan_.moves[i].to);
  spot.whole = true;
  ++plan_.whole_after;
  plan_.gain += gain_of(spot);
  plan_.cost += cost;
  return true;
}

/// Closes as many places as there is room for, so that no place is filled that is to be emptied; if
/// that leaves too little room, the fullest of them is reopened.
void Repacker::empty_some(FleetTypeId type) {
  const std::vector<std::uint32_t> order = candidates(type);
  std::size_t closed = emptied_at_most(type, order);
  for (std::size_t i = 0; i < closed; ++i) set_door(spots_[order[i]], Door::kClosed);
  for (std::size_t i = 0; i < order.size(); ++i) {
    Spot& spot = spots_[order[i]];
    if (!worth_it(spot) || plan_.whole_after - plan_.whole_before >= terms_.wanted) {
      set_door(spot, Door::kOpen);
      continue;
    }
    set_door(spot, Door::kClosed);
    if (empty(spot)) continue;
    if (closed > i + 1) {
      set_door(spots_[order[--closed]], Door::kOpen);
      if (empty(spot)) continue;
    }
    set_door(spot, Door::kOpen);
  }
}

RepackPlan Repacker::run() {
  for (const Spot& spot : spots_) {
    if (!spot.whole) continue;
    ++plan_.whole_before;
    set_door(spot, Door::kClosed);
  }
  plan_.whole_after = plan_.whole_before;
  for (std::uint32_t type = 0; type < now_.view().topology().type_count(); ++type) {
    empty_some(FleetTypeId(type));
  }
  return std::move(plan_);
}

}  // namespace

RepackPlan repack(const FleetView& view, std::span<const MovableGang> movable,
                  const RepackTerms& terms, Placer& placer) {
  return Repacker(view, movable, terms, placer).run();
}

}  // namespace orrery
