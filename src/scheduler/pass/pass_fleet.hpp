// scheduler/pass/pass_fleet.hpp - the fleet as a pass leaves it: now, without devices that are kept
// for jobs with reservations, and in the future.
//
// Belongs to a scheduler's memory, because overlays are expensive to allocate; begin() resets it
// for a pass. Invariant: a job that the pass starts is in all three, so later decisions of the pass
// see it. Cost: that of an edit of an overlay, O(nodes of the gangs x levels).
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "scheduler/forecast/reserved.hpp"
#include "scheduler/forecast/timeline.hpp"

namespace orrery {

class PassFleet {
 public:
  void begin(const FleetView& fleet);

  [[nodiscard]] FleetView now() const { return now_->view(); }
  [[nodiscard]] FleetOverlay& edit();
  /// For queries, which may build views.
  [[nodiscard]] Reserved& reserved() { return *reserved_; }
  [[nodiscard]] Reserved& edit_reserved();
  /// The number of edits so far, each begin() included: while it stays the same, so do now() and
  /// the reserved shadow.
  [[nodiscard]] std::uint64_t edits() const { return edits_; }

  /// A job starts on these devices and runs for `length`.
  void start(Instant now, std::span<const PlacedGang> gangs, Duration length);
  /// Hides the free devices of a gang: no other job gets them in this pass.
  void keep_from_others(const PlacedGang& gang);
  /// Whether free devices are hidden, so that a refusal for lack of room holds in this pass alone.
  [[nodiscard]] bool hides() const { return hides_; }

  /// Called once in a pass that makes reservations, before jobs start by the queue's order.
  void open_timeline(const Situation& situation, std::span<const Reservation> reservations);
  /// nullptr: the pass makes no reservations.
  [[nodiscard]] Timeline* timeline() { return timeline_open_ ? &timeline_ : nullptr; }

 private:
  std::optional<FleetOverlay> now_;
  std::optional<Reserved> reserved_;
  Timeline timeline_;
  bool timeline_open_ = false;
  bool hides_ = false;
  std::uint64_t edits_ = 0;
};

}  // namespace orrery
