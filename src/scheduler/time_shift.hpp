// scheduler/time_shift.hpp - when within its slack a job would run on cleaner or cheaper
// electricity.
//
// Only jobs with a deadline whose goal is cost or energy wait for that: the deadline says for how
// long. Pure. Cost: O(steps of the series within the slack), at most kShiftsMost prices a gang.
#pragma once

#include <optional>
#include <span>

#include "scheduler/gang_pricing.hpp"

namespace orrery {

inline constexpr std::size_t kShiftsMost = 512;

/// How a job would start now.
struct StartNow {
  std::span<const PlacedGang> gangs;
  std::span<const GangTerms> terms;  ///< of each gang
  std::optional<Duration> length;
};

struct LaterStart {
  Instant at;
  std::int64_t saved = 0;  ///< micro-dollars of electricity and carbon, by the policy's weights
};

/// The start at which electricity and carbon of the run are least, if that saves more than the wait
/// costs and a twentieth of them at least: the first of the best among now, the times at which the
/// run would begin or end with a step of a series, and the last at which it is in time
/// (Slack::spare() of its length here). The wait costs the owner's time where the goal is cost, and
/// nothing where it is energy. None: it starts now.
[[nodiscard]] std::optional<LaterStart> later_start(const PriceContext& context,
                                                    const WaitingJob& job, const StartNow& now);

}  // namespace orrery
