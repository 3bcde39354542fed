// scheduler/tenants/finish_time.hpp - how much later a job is done than it would be on its part of
// the fleet: the fairness of Themis.
//
// K. Mahajan et al., "Themis: Fair and Efficient GPU Cluster Scheduling", NSDI 2020. rho is the
// time from a job's submission to its end in the shared fleet, divided by the time on 1/n of the
// fleet alone, where n is the number of jobs; a value above 1 is worse than its part. Pure. Cost:
// O(roles).
#pragma once

#include "scheduler/policy.hpp"
#include "scheduler/situation.hpp"

namespace orrery {

/// Seconds that a whole job takes on its part of the fleet, where n is the number of jobs that wait
/// or run now; on fewer devices than it wants it slows down in proportion. A job of unknown length
/// counts as one of Policy::unknown_run.
[[nodiscard]] double time_on_its_part(const WaitingJob& job, const Policy& policy,
                                      const Situation& situation);

/// Returns rho if the job runs from now on without a break.
[[nodiscard]] double finish_time_fairness(const WaitingJob& job, const Policy& policy,
                                          const Situation& situation);

}  // namespace orrery
