// api/grpc/server.hpp - serves a controller over gRPC with TLS: the methods of clients, and the
// streams of agents.
//
// Built on the loop of the controller, which it is given once that one leads; ends before it. Until
// then it is the server of a standby: it refuses calls, except those of a standby's own methods,
// with UNAVAILABLE and names the leader, in the text and as trailing metadata "orrery-leader", and
// keeps the streams of agents open without a word, to welcome them when the controller leads.
// gRPC's threads only decode, identify the caller, and post to the loop, where the method decides
// whether the caller may (api/access/authorization.hpp); answers go the other way. Calls that wait
// for the loop are bounded: beyond that a call is refused with RESOURCE_EXHAUSTED. Messages that a
// client does not take are bounded too, and end its call. Invariant: no method is called without a
// token, except those for callers without one, and no message of an agent is accepted without a
// certificate of the cluster's authority that names its node.
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
  const ServerTls* tls = nullptr;
  const MethodTable* standby =
      nullptr;  ///< methods of a standby, for all callers; none: it has none
};

/// What a server serves; all outlive it.
struct Served {
  Controller& controller;
  const MethodTable& methods;
  const TokenBook& tokens;
};

class Server {
 public:
  /// Error: it cannot listen at the address, or not with this certificate.
  [[nodiscard]] static Result<std::unique_ptr<Server>> start(const Env& env,
                                                             const ServerOptions& options);
  virtual ~Server() = default;
  /// Serves a controller from now on. Once.
  virtual void lead(const Served& served) = 0;
  /// Sets the leader that refusals of a standby name, as HOST:PORT; empty: none is known.
  virtual void follow(const std::string& leader) = 0;
  /// Returns the address with the port that was chosen: "127.0.0.1:34017".
  [[nodiscard]] virtual const std::string& address() const = 0;
};

}  // namespace orrery
