#include "scheduler/pass/pass_fleet.hpp"

#include <vector>

namespace orrery {

void PassFleet::begin(const FleetView& fleet) {
  if (now_) {
    now_->reset(fleet);
  } else {
    now_.emplace(fleet);
    reserved_.emplace(fleet);
  }
  reserved_->reset(fleet);
  timeline_open_ = false;
  hides_ = false;
  ++edits_;
}

FleetOverlay& PassFleet::edit() {
  ++edits_;
  return *now_;
}

Reserved& PassFleet::edit_reserved() {
  ++edits_;
  return *reserved_;
}

void PassFleet::start(Instant now, std::span<const PlacedGang> gangs, Duration length) {
  take(edit(), gangs);
  if (reserved_->any()) edit_reserved().cover(gangs);
  if (timeline_open_) timeline_.reserve({now, {gangs.begin(), gangs.end()}}, length);
}

void PassFleet::keep_from_others(const PlacedGang& gang) {
  hides_ = true;
  edit().hide(gang.allocation.ranks);
}

namespace {

/// Adds the nodes that are closed now and take jobs again when their closure is over.
void add_closed(const Situation& situation, std::vector<Ending>& endings) {
  for (const Closure& closure : situation.closures) {
    if (!closure.returns || closure.to <= situation.now) continue;
    for (const NodeDevices& at : closure.nodes) {
      endings.push_back({.end = closure.to, .node = at.node});
    }
  }
}

}  // namespace

void PassFleet::open_timeline(const Situation& situation,
                              std::span<const Reservation> reservations) {
  std::vector<Ending> endings;
  for (const RunningJob& job : situation.running) {
    for (const PlacedGang& gang : job.gangs) {
      endings.push_back({&gang.allocation, gang.host, job.expected_end});
    }
  }
  add_closed(situation, endings);
  timeline_.open(situation.fleet, situation.now, endings);
  timeline_open_ = true;
  for (const Closure& closure : situation.closures) {
    if (closure.to > situation.now) timeline_.close(closure);
  }
  for (const Reservation& slot : reservations) {
    timeline_.reserve({situation.now, slot.gangs}, Duration::max());
  }
}

}  // namespace orrery
