// api/orrery_service.hpp - the methods of orrery.v1.Orrery over a controller.
//
// The controller outlives the table and every call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "api/grpc/method_table.hpp"
#include "base/env.hpp"
#include "executor/controller.hpp"

namespace orrery {

/// Returns the methods by name: "SubmitJob". Each is called, and answers, on the controller's loop.
[[nodiscard]] MethodTable orrery_methods(Controller& controller, const Env& env);

/// Returns the job of that number. None: there is none, or it is archived, and the call was
/// finished with that error.
[[nodiscard]] std::optional<JobId> find_job(const Controller& controller, std::uint64_t number,
                                            Call& call);

/// Returns the text of a job as the caller submits it. `file`: its name; empty: "job".
[[nodiscard]] JobText job_text(const std::string& spec, const std::string& file,
                               const Caller& caller);

/// Makes a request id unique among all callers: two that count theirs from 1 mean two changes.
[[nodiscard]] std::string own_request_id(const std::string& request_id, const Call& call);

/// Returns the node of that name. None: there is none, and the call was finished with that error
/// and the nearest name.
[[nodiscard]] std::optional<NodeId> find_node(const Controller& controller, const std::string& name,
                                              Call& call);

}  // namespace orrery
