// scheduler/price/run_time.hpp - how long a job is expected to run where it is placed.
#pragma once

#include <optional>
#include <span>

#include "scheduler/policy.hpp"
#include "scheduler/request/placed_gang.hpp"
#include "scheduler/situation.hpp"

namespace orrery {

/// A plan, and the time of its step on the devices in question relative to its canonical piece.
struct PlanHere {
  const PlannedWork* plan = nullptr;
  double ratio = 1;
};

/// The fastest known plan of an option; nullptr if it needs none, or if none has been found.
[[nodiscard]] const PlannedWork* best_plan(const PlanTable* plans, const GangOption& option);

/// Run time of a whole job by one of a role's options: steps x step time if the work has a plan,
/// else the estimate over the option's speed, else the time limit. No value for a service, which
/// runs until it is stopped, or for a job about which nothing is known. Never more than the time
/// limit.
[[nodiscard]] std::optional<Duration> whole_run_time(const JobRequest& job, const RoleRequest& role,
                                                     const GangOption& option,
                                                     const PlanHere& here);

/// Run time of a whole job, for the order of a queue: that of the role that takes longest by its
/// first option. No value if nothing is known.
[[nodiscard]] std::optional<Duration> known_whole_time(const JobRequest& job,
                                                       const PlanTable* plans);

/// The part of known_whole_time() that is left.
[[nodiscard]] std::optional<Duration> known_time_left(const WaitingJob& job,
                                                      const PlanTable* plans);

/// known_time_left(), or `unknown` where nothing is known.
[[nodiscard]] Duration time_left(const WaitingJob& job, const PlanTable* plans, Duration unknown);

/// A run of uncertain length: log-normal with median `expected`; `sigma` is that of its logarithm.
struct UncertainRun {
  double expected = 0;  ///< seconds
  double lasted = 0;    ///< seconds it has lasted so far; 0: not begun
  double sigma = 0;
};

/// Seconds within which it ends from now on with probability `part`, in (0, 1). With Q(z) the upper
/// tail of the standard normal distribution and a = ln(lasted / expected) / sigma, a run that has
/// lasted so long lasts longer than t with probability Q(ln(t / expected) / sigma) / Q(a), so the
/// quantile is
///   expected x exp(sigma x Q^-1((1 - part) x Q(a))) - lasted
/// (truncation from below of the log-normal distribution: N. L. Johnson, S. Kotz and
/// N. Balakrishnan, "Continuous Univariate Distributions", vol. 1, 2nd ed., Wiley 1994, ch. 14).
[[nodiscard]] double time_left(const UncertainRun& run, double part);

/// Number of devices of all gangs by their first options.
[[nodiscard]] std::uint32_t devices_wanted(const JobRequest& job);

}  // namespace orrery
