#include "scheduler/rounds/start_ramp.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace orrery {

StartRamp::StartRamp(WattsPerSecond ramp) : ramp_(ramp) {
  ORRERY_ASSERT(ramp > WattsPerSecond(0), "a site that may not rise at all starts nothing");
}

Instant StartRamp::admit(Instant now, Watts rise) {
  ORRERY_ASSERT(rise >= Watts(0), "only what raises the draw waits for its turn");
  const Instant start = std::max(now, next_);
  next_ = start + Duration::from_seconds((rise / ramp_).value());
  return start;
}

std::vector<Duration> stagger(std::span<const Watts> rises, WattsPerSecond ramp) {
  StartRamp site(ramp);
  std::vector<Duration> offsets;
  offsets.reserve(rises.size());
  for (const Watts rise : rises) offsets.push_back(site.admit(Instant(), rise) - Instant());
  return offsets;
}

}  // namespace orrery
