// api/access/authorization.hpp - the one place that decides which callers may call a method, and on
// which jobs.
//
// Wraps a table of methods before it is audited and served; the servers only identify the caller.
// Per call, in this order:
//   1. The caller's role has to be that of the method's rule, or above it.
//   2. A caller with a tenant is refused a method that states no scope.
//   3. Where the scope is a job, a job outside of the caller's tenant is answered exactly as one
//      that does not exist.
//   4. In every answer the values of `environment` in the specs of jobs are replaced, unless the
//      answer is that job alone and the caller may submit in its tenant.
// On the controller's loop. Cost: of a job that is archived, a read of the archive.
#pragma once

#include "api/grpc/method_table.hpp"
#include "executor/controller.hpp"

namespace orrery {

/// Returns the methods wrapped by these rules. The controller outlives the table.
[[nodiscard]] MethodTable authorized(const MethodTable& methods, const Controller& controller);

/// Returns the answer for a job that does not exist for the caller.
[[nodiscard]] CallStatus no_such_job(std::uint64_t id);

/// Returns the number of the job that a request names by its field `id`; none: it has no such
/// field.
[[nodiscard]] std::optional<std::uint64_t> job_number(const google::protobuf::Message& request);

/// Returns the tenant of a job of the state or of the archive. None: there is no such job, or its
/// row of the archive cannot be read.
[[nodiscard]] std::optional<std::string> tenant_of_job(const Controller& controller,
                                                       std::uint64_t id);

}  // namespace orrery
