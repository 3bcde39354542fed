// api/store_service.hpp - the methods of orrery.v1.Orrery that manage the log and the fleet, for
// admins.
//
// The controller outlives the table and every call. On the controller's loop.
#pragma once

#include <functional>
#include <string>

#include "api/grpc/method_table.hpp"
#include "executor/controller.hpp"

namespace orrery {

/// Returns the methods wrapped so that calls are refused with UNAVAILABLE, and why, while the log
/// cannot be written: their answers would wait for it.
[[nodiscard]] MethodTable refused_in_silence(const MethodTable& methods,
                                             const Controller& controller);

void add_store_methods(MethodTable& table, Controller& controller);

/// Called with the text of a fleet that holds from now on, before the call that changed it ends.
using FleetChanged = std::function<void(const std::string& fleet)>;

void add_fleet_methods(MethodTable& table, Controller& controller, FleetChanged changed = {});

}  // namespace orrery
