// executor/live/control_clock.hpp - control's time in a running controller: the monotonic clock
// plus a constant, so that it is near the time of day and never goes back, not even over starts.
//
// A small value; the clock outlives it.
#pragma once

#include <algorithm>

#include "base/env.hpp"

namespace orrery {

class ControlClock {
 public:
  /// Begins at the time of day, or at `newest` if that is later: the newest time in the log.
  ControlClock(const Clock& clock, Instant newest)
      : clock_(&clock), ahead_(std::max(clock.now_wall(), newest) - clock.now_monotonic()) {}

  [[nodiscard]] Instant now() const { return clock_->now_monotonic() + ahead_; }
  /// The time of day.
  [[nodiscard]] Instant wall() const { return clock_->now_wall(); }
  /// The time for measuring durations.
  [[nodiscard]] Instant monotonic() const { return clock_->now_monotonic(); }
  /// The monotonic time at control's time `at`.
  [[nodiscard]] Instant monotonic_at(Instant at) const { return at - ahead_; }

 private:
  const Clock* clock_;
  Duration ahead_;
};

}  // namespace orrery
