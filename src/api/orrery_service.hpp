// api/orrery_service.hpp - the methods of orrery.v1.Orrery over a controller.
//
// The controller outlives the table and every call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "api/method_table.hpp"
#include "base/env.hpp"
#include "executor/controller.hpp"

namespace orrery {

/// By their names: "SubmitJob". Each is called, and answers, on the controller's loop.
[[nodiscard]] MethodTable orrery_methods(Controller& controller, const Env& env);

/// The job of that number. None: the call was told that there is none, or that it is archived.
[[nodiscard]] std::optional<JobId> find_job(const Controller& controller, std::uint64_t number,
                                            Call& call);

/// What names a change among those of all callers: two who count theirs from 1 mean two changes.
[[nodiscard]] std::string own_request_id(const std::string& request_id, const Call& call);

/// The node of that name. None: the call was told so, with the name that is near.
[[nodiscard]] std::optional<NodeId> find_node(const Controller& controller, const std::string& name,
                                              Call& call);

}  // namespace orrery
