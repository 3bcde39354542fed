#include "base/system/real_clock.hpp"

#include <ctime>

#include "base/assert.hpp"

namespace orrery {
namespace {

Instant read_clock(clockid_t clock) {
  timespec now{};
  const int failed = ::clock_gettime(clock, &now);
  ORRERY_ASSERT(failed == 0, "Linux has had these clocks since 2.6.39");
  return Instant() + Duration::seconds(now.tv_sec) + Duration::nanoseconds(now.tv_nsec);
}

}  // namespace

Instant RealClock::now_wall() const { return read_clock(CLOCK_REALTIME); }

Instant RealClock::now_monotonic() const { return read_clock(CLOCK_MONOTONIC); }

Instant RealClock::now_boot() const { return read_clock(CLOCK_BOOTTIME); }

}  // namespace orrery
