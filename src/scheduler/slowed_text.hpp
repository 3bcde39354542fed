// scheduler/slowed_text.hpp - at which clock a job runs, and which limit of power is the reason.
//
// Pure; views of a live job and the story of a simulated one print it. Cost: O(nodes of the job).
#pragma once

#include <string>

#include "scheduler/situation.hpp"

namespace orrery {

/// "runs at 92 % of its clock: east/power-cap carries 279.8 kW of its 280 kW"; empty for a job at
/// its full clock. Of several gangs the slowest counts, of several limits above it the one that
/// leaves least.
[[nodiscard]] std::string slowed_text(const Situation& situation, const RunningJob& job);

}  // namespace orrery
