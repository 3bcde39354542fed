// api/http/http_server.hpp - the methods of clients as REST with JSON over TLS, and endpoints for
// browsers and monitors: server-sent events, /metrics, /healthz, /openapi.json.
//
// Built on the loop of the controller, which it is given once that one leads; ends before it. Until
// then it is the server of a standby: it redirects requests to the leader (307), or refuses them
// where none is known, and answers /healthz and /metrics itself, of the standby alone and without a
// token. libmicrohttpd's thread reads requests and writes answers; a connection that waits for the
// loop, or for the next event, is suspended and costs a descriptor and some KiB, so watchers may be
// many. Requests that are too large, too many or without a valid token are refused.
#pragma once

#include <memory>
#include <string>

#include "api/agents/certificates.hpp"
#include "api/grpc/server.hpp"
#include "api/standby/standby_service.hpp"
#include "base/env.hpp"

namespace orrery {

struct HttpServerOptions {
  std::string address = "127.0.0.1:0";
  const ServerTls* tls = nullptr;
  /// How far a standby is, called on the loop; none: a standby has no /metrics.
  AskProgress standby = {};
};

class HttpServer {
 public:
  /// Errors: an invalid address, or one where it cannot listen.
  [[nodiscard]] static Result<std::unique_ptr<HttpServer>> start(const Env& env,
                                                                 const HttpServerOptions& options);
  virtual ~HttpServer() = default;
  /// Serves a controller from now on. Once.
  virtual void lead(const Served& served) = 0;
  /// Sets the leader that a standby redirects to, as HOST:PORT of its own HTTP server; empty: none
  /// is known.
  virtual void follow(const std::string& leader) = 0;
  /// Returns the address with the port that was chosen.
  [[nodiscard]] virtual const std::string& address() const = 0;
};

}  // namespace orrery
