// api/jobs/job_explanation.hpp - answers a call that asks why a job waits, or what it does instead.
//
// On the controller's loop. The explanation of a queued job is computed beside it
// (executor/side_reads.hpp), on the situation of the moment in which its turn comes; names of jobs
// and what the scheduler does not know are collected then, too. A call beyond those that may wait
// is refused with UNAVAILABLE. Cost on the loop: O(waiting + running + nodes).
#pragma once

#include <memory>

#include "api/grpc/call.hpp"
#include "executor/controller.hpp"

namespace orrery {

/// Answers the call once the state that the answer is of is durable. Precondition: the job is in
/// the state.
void begin_explanation(Controller& controller, JobId job, const std::shared_ptr<Call>& call);

}  // namespace orrery
