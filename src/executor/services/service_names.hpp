// executor/services/service_names.hpp - whether a service may begin beside those that run: within a
// tenant, names of services and of models mean one service.
//
// Pure. Cost: that of reading the specs of the tenant's services.
#pragma once

#include "base/error.hpp"
#include "control/state/state.hpp"
#include "executor/jobs/job_intake.hpp"

namespace orrery {

/// Checks the jobs of a text before they are submitted. Error, with position: a service of the same
/// tenant runs that has the name, or serves a model of that name; which, and how it is updated.
/// Jobs without revisions may have any name, and a service whose replicas are all cancelled is
/// over.
[[nodiscard]] Status check_service_names(const State& state, const JobText& text,
                                         const JobRequest& asked);

}  // namespace orrery
