// apps/orrery/job_end.hpp - waiting for jobs to end.
#pragma once

#include <cstdint>
#include <vector>

#include "apps/orrery/live_session.hpp"
#include "orrery/v1/orrery.pb.h"

namespace orrery {

/// Every page of what is asked for.
[[nodiscard]] Result<v1::ListJobsResponse> list_jobs(LiveSession& session,
                                                     v1::ListJobsRequest request);

/// Waits until all have ended and prints how, each as soon as it is its turn. kInfeasible when one
/// did not finish: exit 1.
[[nodiscard]] Status wait_for_jobs(const CommandOptions& options, LiveSession& session,
                                   const std::vector<std::uint64_t>& ids);

}  // namespace orrery
