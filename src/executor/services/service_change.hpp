// executor/services/service_change.hpp - what a spec that a user submits for a running service asks
// of it: another revision, or another number of replicas.
//
// Pure. Cost: that of reading two specs.
#pragma once

#include <vector>

#include "control/input.hpp"
#include "control/state/state.hpp"
#include "executor/jobs/job_intake.hpp"

namespace orrery {

/// Returns the command that gives the service of `replica` what the text asks for. `jobs` are those
/// that JobIntake::read() made of the text. A spec that differs from one that the service runs in
/// its replicas and its rollout alone asks for that revision; one that differs in `slo`, `tenants`
/// or `scaling`, too, gives that revision other terms. Errors, with positions: the job is no
/// replica of a running service; another name, tenant or model; several roles; another revision
/// under the id of one that runs.
[[nodiscard]] Result<UpdateService> service_change(const State& state, JobId replica,
                                                   const JobText& text,
                                                   const std::vector<SubmitJob>& jobs);

}  // namespace orrery
