// api/jobs/job_changes.hpp - the methods that change jobs: CancelJob, HoldJob, ReleaseJob,
// RequeueJob, ChangeJob and UpdateService.
//
// Part of orrery_methods() (api/orrery_service.hpp), on the controller's loop; the controller
// outlives the table. Each is one command to the core, answered once it is durable.
#pragma once

#include "api/grpc/method_table.hpp"
#include "executor/controller.hpp"

namespace orrery {

void add_job_changes(MethodTable& table, Controller& controller);

}  // namespace orrery
