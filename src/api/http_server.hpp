// api/http_server.hpp - the methods of clients as REST with JSON over TLS, and what browsers and
// monitors ask for: server-sent events, /metrics, /healthz, /openapi.json.
//
// Built beside a controller, on its loop; ends before it. libmicrohttpd's thread reads requests and
// writes answers; a connection that waits for the loop, or for the next event, is suspended and
// costs a descriptor and some KiB, so watchers may be many. What is too large, too many or has no
// token for it is refused.
#pragma once

#include <memory>
#include <string>

#include "api/certificates.hpp"
#include "api/method_table.hpp"
#include "api/token_book.hpp"
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
  /// Errors: an address that is none, or that cannot be listened at.
  [[nodiscard]] static Result<std::unique_ptr<HttpServer>> start(const Env& env,
                                                                 Controller& controller,
                                                                 const HttpServerOptions& options);
  virtual ~HttpServer() = default;
  /// With the port that was chosen.
  [[nodiscard]] virtual const std::string& address() const = 0;
};

}  // namespace orrery
