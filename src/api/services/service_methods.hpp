// api/services/service_methods.hpp - the methods of orrery.v1.Orrery that are about services: what
// gateways ask, and what a job shows of the service that it is a replica of.
//
// Made for a controller that leads; the controller, the token book and the environment outlive the
// table and every call. On the controller's loop. Cost of a change of the table: a message to each
// gateway.
#pragma once

#include "api/access/token_book.hpp"
#include "api/grpc/method_table.hpp"
#include "base/env.hpp"
#include "executor/controller.hpp"

namespace orrery {

/// Adds SyncGateway to the table, the service to the answers of its GetJob, and to AddServiceKey
/// that it answers once gateways know the key. Precondition: the table has both.
void add_service_methods(MethodTable& table, Controller& controller, const Env& env,
                         const TokenBook& tokens);

}  // namespace orrery
