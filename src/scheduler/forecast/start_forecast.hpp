// scheduler/forecast/start_forecast.hpp - when a waiting job is likely to start: the queue is
// simulated many times.
//
// Each future draws a run time for every job, log-normal about its estimate with the policy's
// `estimate_sigma`, for running jobs conditional on the time they have lasted (time_left in
// run_time.hpp), and advances from one end of a run to the next: waiting jobs start in the policy's
// order where they fit, within the quotas of their tenants, beside the reservations of jobs that
// must not be delayed. New jobs arrive at the rate and of the kinds of the latest arrivals that are
// still present. Run times are drawn by Latin hypercube sampling, so few futures suffice.
//
// Not modelled: what CountedFleet leaves out, preemption, power, moves, waiting by choice of other
// jobs, and failures. Reservations are counted by type, not placed. Pure in its inputs; one thread.
// Cost: bounded by the number of times a job is considered (kWorkMost), about 10 ns each; there are
// fewer futures for long queues.
#pragma once

#include <optional>

#include "scheduler/place/place_tree.hpp"
#include "scheduler/policy.hpp"
#include "scheduler/situation.hpp"

namespace orrery {

/// When the job is likely to start. Max: later than the end of the forecast.
struct LikelyStart {
  Duration median;                     ///< from now
  Duration late;                       ///< nine of ten starts are earlier
  std::optional<FleetTypeId> on = {};  ///< type of the first gang in most futures
};

struct ForecastAsk {
  JobId job;                            ///< job that waits in the situation
  std::vector<JobId> after;             ///< running jobs that prevent its start
  std::optional<FleetTypeId> declined;  ///< the job does not start on this type ..
  Instant declined_until;               ///< .. before this instant
};

/// Returns no value if the job starts in less than half of the futures, or if too many jobs are
/// ahead of it.
[[nodiscard]] std::optional<LikelyStart> forecast_start(const Situation& situation,
                                                        const Policy& policy, const PlaceTree& tree,
                                                        const ForecastAsk& ask);

}  // namespace orrery
