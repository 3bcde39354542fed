// apps/orrery/job_end.hpp - waiting for jobs to end.
#pragma once

#include <cstdint>
#include <vector>

#include "apps/orrery/live_session.hpp"

namespace orrery {

/// Waits until all jobs have ended and prints their outcomes in the given order. kInfeasible when
/// one did not finish: exit 1.
[[nodiscard]] Status wait_for_jobs(const CommandOptions& options, LiveSession& session,
                                   const std::vector<std::uint64_t>& ids);

}  // namespace orrery
