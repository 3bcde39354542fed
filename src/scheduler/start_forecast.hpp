// scheduler/start_forecast.hpp - when a waiting job is likely to start: the queue played forward
// many times.
//
// Each future gives every job a run time, log-normal about its estimate with the policy's
// `estimate_sigma`, of what runs given that it has lasted so long (time_left in run_time.hpp), and
// goes from end to end: the waiting start in the policy's order where they fit, within the quotas
// of their tenants, beside slots of those whom nobody may delay. New jobs come as they came: at the
// rate and of the kinds of the latest that are still here. Run times of the futures are drawn by
// Latin hypercube, so few futures do.
//
// Left out: what CountedFleet leaves out, preemption, power, moves, waiting by choice of other
// jobs, and failures. Slots are counted by type, not placed. Pure in its inputs; one thread. Cost:
// bounded by considerations of a job (kWorkMost), about 10 ns each; there are fewer futures for
// long queues.
#pragma once

#include <optional>

#include "scheduler/place_tree.hpp"
#include "scheduler/policy.hpp"
#include "scheduler/situation.hpp"

namespace orrery {

/// When it is likely to start. Max: later than a forecast looks.
struct LikelyStart {
  Duration median;                     ///< from now
  Duration late;                       ///< nine of ten starts are earlier
  std::optional<FleetTypeId> on = {};  ///< of the first gang, most often
};

struct ForecastAsk {
  JobId job;                            ///< waits in the situation
  std::vector<JobId> after;             ///< running jobs that are in its way
  std::optional<FleetTypeId> declined;  ///< the job starts on no such devices ..
  Instant declined_until;               ///< .. before then
};

/// None: it starts in less than half of the futures, or too many jobs are ahead of it.
[[nodiscard]] std::optional<LikelyStart> forecast_start(const Situation& situation,
                                                        const Policy& policy, const PlaceTree& tree,
                                                        const ForecastAsk& ask);

}  // namespace orrery
