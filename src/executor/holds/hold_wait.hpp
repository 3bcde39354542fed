// executor/holds/hold_wait.hpp - how long jobs wait for nodes that a resource manager lends, as the
// manager itself, and the holds before, tell.
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

/// Returns when holds are likely to start that nodes for a job may come from: the first is for the
/// first of the jobs that wait, and so on; the last one stands for all later ones. From the
/// manager's estimate, else from the usual wait. Empty: not known, or the job cannot run in a hold.
/// O(holds log holds + managers x options).
[[nodiscard]] std::vector<LikelyStart> lent_starts(const HoldLink& link, const State& state,
                                                   JobId job, Instant now);

}  // namespace orrery
