// base/real_clock.hpp - the clocks of Linux: CLOCK_REALTIME and CLOCK_MONOTONIC.
//
// Stateless, so any thread may read it. A suspended machine stops the monotonic clock.
#pragma once

#include "base/env.hpp"

namespace orrery {

class RealClock final : public Clock {
 public:
  [[nodiscard]] Instant now_wall() const override;
  [[nodiscard]] Instant now_monotonic() const override;
};

}  // namespace orrery
