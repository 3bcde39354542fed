// api/http/http_server.hpp - the methods of clients as REST with JSON over TLS, and endpoints for
// browsers and monitors: server-sent events, /metrics, /healthz, /openapi.json.
//
// Built beside a controller, on its loop; ends before it. libmicrohttpd's thread reads requests and
// writes answers; a connection that waits for the loop, or for the next event, is suspended and
// costs a descriptor and some KiB, so watchers may be many. Requests that are too large, too many
// or without a valid token are refused.
#pragma once

#include <memory>
#include <string>

#include "api/access/token_book.hpp"
#include "api/agents/certificates.hpp"
#include "api/grpc/method_table.hpp"
#include "base/env.hpp"
#include "executor/controller.hpp"

namespace orrery {

struct HttpServerOptions {
  std::string address = "127.0.0.1:0";
  const MethodTable* methods = nullptr;
  const TokenBook* tokens = nullptr;
  const ServerTls* tls = nullptr;
};

class HttpServer {
 public:
  /// Errors: an invalid address, or one where it cannot listen.
  [[nodiscard]] static Result<std::unique_ptr<HttpServer>> start(const Env& env,
                                                                 Controller& controller,
                                                                 const HttpServerOptions& options);
  virtual ~HttpServer() = default;
  /// Returns the address with the port that was chosen.
  [[nodiscard]] virtual const std::string& address() const = 0;
};

}  // namespace orrery
