// api/store_service.hpp - the methods of orrery.v1.Orrery that manage the log, for admins.
//
// The controller outlives the table and every call. On the controller's loop.
#pragma once

#include "api/method_table.hpp"
#include "executor/controller.hpp"

namespace orrery {

void add_store_methods(MethodTable& table, Controller& controller);

}  // namespace orrery
