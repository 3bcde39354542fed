// scheduler/price/slowed_text.hpp - the clock at which a job runs, and the power limit that is the
// reason.
//
// Pure; views of a live job and the story of a simulated one print it. Cost: O(nodes of the job).
#pragma once

#include <string>

#include "scheduler/situation.hpp"

namespace orrery {

/// "runs at 92 % of its clock: east/power-cap carries 279.8 kW of its 280 kW"; empty for a job at
/// its full clock. The slowest of several gangs counts, and of several limits above it the one that
/// leaves least.
[[nodiscard]] std::string slowed_text(const Situation& situation, const RunningJob& job);

}  // namespace orrery
