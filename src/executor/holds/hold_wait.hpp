// executor/holds/hold_wait.hpp - estimates of when a resource manager will lend nodes for a job:
// from the manager's own estimates, else from how long earlier holds waited. api/ calls them for
// `explain` and `holds`.
//
// Pure in its inputs; one thread.
#pragma once

#include <optional>
#include <vector>

#include "executor/holds/hold_link.hpp"
#include "scheduler/forecast/start_forecast.hpp"

namespace orrery {

/// Returns how long the newest holds of a manager waited, half of them and nine of ten; none: no
/// hold was granted yet. O(n log n) in the holds that are remembered.
[[nodiscard]] std::optional<LikelyStart> usual_wait(const ManagerState& manager);

/// Returns when the holds are likely to start whose nodes the job could use, the earliest first.
/// The n-th is the estimate for the n-th waiting job, and the last one that for all later jobs.
/// Empty: there is no estimate, or the job cannot run in a hold. O(holds log holds + managers x
/// options).
[[nodiscard]] std::vector<LikelyStart> lent_starts(const HoldLink& link, const State& state,
                                                   JobId job, Instant now);

}  // namespace orrery
