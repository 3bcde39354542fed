// scheduler/price/time_shift.hpp - the time within its slack at which a job would run on cleaner or
// cheaper electricity.
//
// Only jobs with a deadline whose goal is cost or energy wait for that: the deadline limits how
// long. Pure. Cost: O(steps of the series within the slack), at most kShiftsMost prices for each
// gang.
#pragma once

#include <optional>
#include <span>

#include "scheduler/price/gang_pricing.hpp"

namespace orrery {

inline constexpr std::size_t kShiftsMost = 512;

/// How a job would start now.
struct StartNow {
  std::span<const PlacedGang> gangs;
  std::span<const GangTerms> terms;  ///< terms of each gang
  std::optional<Duration> length;
};

struct LaterStart {
  Instant at;
  std::int64_t saved = 0;  ///< micro-dollars of electricity and carbon, by the policy's weights
};

/// The start at which electricity and carbon of the run cost least, if that saves more than the
/// wait costs and at least a twentieth of them: the first of the best among now, the times at which
/// the run would begin or end with a step of a series, and the last time at which it meets its
/// deadline (Slack::spare() of its length here). The wait costs the owner's time if the goal is
/// cost, and nothing if it is energy. No value: the job starts now.
[[nodiscard]] std::optional<LaterStart> later_start(const PriceContext& context,
                                                    const WaitingJob& job, const StartNow& now);

}  // namespace orrery
