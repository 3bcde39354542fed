// api/grpc/server.hpp - serves a controller over gRPC with TLS: the methods of clients, and the
// streams of agents.
//
// Built beside a controller, on its loop; ends before it. gRPC's threads only decode, identify the
// caller, and post to the loop, where the method decides whether the caller may
// (api/access/authorization.hpp); answers go the other way. Calls that wait for the loop are
// bounded: beyond that a call is refused with RESOURCE_EXHAUSTED. Messages that a client does not
// take are bounded too, and end its call. Invariant: no method is called without a token, except
// those for callers without one, and no message of an agent is accepted without a certificate of
// the cluster's authority that names its node.
#pragma once

#include <memory>
#include <string>

#include "api/access/token_book.hpp"
#include "api/agents/certificates.hpp"
#include "api/grpc/method_table.hpp"
#include "base/env.hpp"
#include "executor/controller.hpp"

namespace orrery {

struct ServerOptions {
  std::string address = "127.0.0.1:0";
  const MethodTable* methods = nullptr;
  const TokenBook* tokens = nullptr;
  const ServerTls* tls = nullptr;
};

class Server {
 public:
  /// Error: it cannot listen at the address, or not with this certificate.
  [[nodiscard]] static Result<std::unique_ptr<Server>> start(const Env& env, Controller& controller,
                                                             const ServerOptions& options);
  virtual ~Server() = default;
  /// Returns the address with the port that was chosen: "127.0.0.1:34017".
  [[nodiscard]] virtual const std::string& address() const = 0;
};

}  // namespace orrery
