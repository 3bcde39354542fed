// api/exec_service.hpp - the method Exec: a command beside a rank of a running job, for as long as
// its call lasts.
//
// A command acts as the POSIX user of its job, so only the job's submitter, operators and admins
// may run one. On the controller's loop. Output on its way to the client is bounded by the node's
// window (kExecBytesMax), which moves on when the client has taken it; input is read from the
// client while the command takes it.
#pragma once

#include "api/grpc/method_table.hpp"
#include "executor/controller.hpp"

namespace orrery {

/// The controller outlives the table.
void add_exec_method(MethodTable& table, Controller& controller);

}  // namespace orrery
