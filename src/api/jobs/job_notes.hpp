// api/jobs/job_notes.hpp - notes in a view of a job about its deadline, its ranks and its clock.
//
// Reads the controller's state on its loop. Cost: O(nodes and ranks of the job).
#pragma once

#include <string>
#include <vector>

#include "executor/controller.hpp"

namespace orrery {

/// Returns sentences without a full stop. Precondition: the job exists.
[[nodiscard]] std::vector<std::string> job_notes(const Controller& controller, const Job& job);

/// Returns "runs at 92 % of its clock: east/power-cap carries 279.8 kW of its 280 kW"; empty for a
/// job that runs at its full clock, or does not run.
[[nodiscard]] std::string slowed_note(const Controller& controller, const Job& job);

}  // namespace orrery
