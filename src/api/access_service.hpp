// api/access_service.hpp - the methods of orrery.v1.Orrery by which people and nodes are let in:
// users with their tokens, and agents with their certificates.
//
// What it works on, and the controller, outlive the table and every call. On the controller's loop;
// each change is durable before it is answered, which blocks the loop for a small file's time.
#pragma once

#include "api/certificates.hpp"
#include "api/join_book.hpp"
#include "api/method_table.hpp"
#include "api/token_book.hpp"
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
