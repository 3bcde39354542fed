// verbs/jobs/job_end.hpp - waiting for jobs to end.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "orrery/v1/orrery.pb.h"
#include "verbs/cluster/live_session.hpp"

namespace orrery {

/// Waits until all jobs have ended and calls `ended` with each, in the given order, and with
/// "job 7 (train) finished". Error: kInfeasible when one did not finish, with the outcomes of those
/// that did not.
[[nodiscard]] Status wait_for_jobs(
    LiveSession& session, const std::vector<std::uint64_t>& ids,
    const std::function<void(const v1::Job&, const std::string&)>& ended);

/// Returns the ended jobs as JSON: one job as an object, several as an array.
[[nodiscard]] Json ends_json(const std::vector<v1::Job>& jobs);

}  // namespace orrery
