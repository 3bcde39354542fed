// api/access/access_service.hpp - the methods of orrery.v1.Orrery that manage access: users with
// their tokens, and agents with their certificates.
//
// The objects it works on, and the controller, outlive the table and every call. On the
// controller's loop; each change is durable before it is answered, which blocks the loop while a
// small file is written.
#pragma once

#include "api/access/token_book.hpp"
#include "api/agents/certificates.hpp"
#include "api/agents/join_book.hpp"
#include "api/grpc/method_table.hpp"
#include "executor/controller.hpp"

namespace orrery {

struct Access {
  TokenBook& tokens;
  JoinBook& joins;
  const TlsIdentity& authority;
};

void add_access_methods(MethodTable& table, Controller& controller, const Env& env,
                        const Access& access);

}  // namespace orrery
