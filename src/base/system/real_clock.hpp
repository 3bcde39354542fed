// base/system/real_clock.hpp - the clocks of Linux: CLOCK_REALTIME, CLOCK_MONOTONIC and
// CLOCK_BOOTTIME.
//
// Stateless, so any thread may read it. A suspended machine stops the monotonic clock.
#pragma once

#include "base/env.hpp"

namespace orrery {

class RealClock final : public Clock {
 public:
  [[nodiscard]] Instant now_wall() const override;
  [[nodiscard]] Instant now_monotonic() const override;
  /// Never goes back and counts sleep; the same for all processes of a machine, from its boot on.
  [[nodiscard]] Instant now_boot() const;
};

}  // namespace orrery
