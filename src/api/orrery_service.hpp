// api/orrery_service.hpp - the methods of orrery.v1.Orrery over a controller.
//
// The controller outlives the table and every call.
#pragma once

#include <optional>

#include "api/method_table.hpp"
#include "base/env.hpp"
#include "executor/controller.hpp"

namespace orrery {

/// By their names: "SubmitJob". Each is called, and answers, on the controller's loop.
[[nodiscard]] MethodTable orrery_methods(Controller& controller, const Env& env);

/// The node of that name. None: the call was told so, with the name that is near.
[[nodiscard]] std::optional<NodeId> find_node(const Controller& controller, const std::string& name,
                                              Call& call);

}  // namespace orrery
