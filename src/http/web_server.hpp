// http/web_server.hpp - an HTTP/1.1 server on the event loop: whole requests in, whole or streamed
// answers out.
//
// main() makes one with its loop and a handler, which outlive it. All calls and callbacks are on
// the loop's thread. Each connection has at most one exchange at a time: pipelined requests wait
// for the answer before theirs. No callback runs inside a call of a WebExchange.
//
//   1. The handler gets a WebExchange for each whole request and keeps it until it has answered.
//   2. It answers with respond(), or with begin(), any number of send(), and end().
//   3. A client that leaves first (or reads too slowly) is told of by on_gone(); from then on all
//      calls of the exchange do nothing.
//   4. An exchange that is destroyed before begin() answers 500; after begin() and before end(), it
//      breaks the connection, so that the client sees an incomplete answer.
//
// Malformed requests (400), too large ones (413, 431) are answered without the handler. Cost: one
// read and one write of the socket for a small request; timeouts are checked once a second.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/env.hpp"
#include "base/error.hpp"
#include "base/system/real_loop.hpp"
#include "base/time.hpp"
#include "http/web_headers.hpp"
#include "http/web_request.hpp"

namespace orrery {

class WebConnection;

/// One request and the way to its answer. Movable; a moved-from one is empty.
class WebExchange {
 public:
  WebExchange() = default;
  /// Only the server makes exchanges of requests.
  WebExchange(WebConnection& connection, std::unique_ptr<WebRequest> request);
  WebExchange(WebExchange&& other) noexcept;
  WebExchange& operator=(WebExchange&& other) noexcept;
  WebExchange(const WebExchange&) = delete;
  WebExchange& operator=(const WebExchange&) = delete;
  ~WebExchange();

  /// Lives as long as this object or what it is moved to. Precondition: not empty.
  [[nodiscard]] const WebRequest& request() const { return *request_; }
  /// Whether the client is there and waits for (the rest of) the answer.
  [[nodiscard]] bool open() const { return connection_ != nullptr; }
  /// Address and port of the client, such as "127.0.0.1:40000"; "" where it has gone.
  [[nodiscard]] std::string client() const;

  /// `gone` runs at most once, when the client leaves before the answer ended. It may destroy this
  /// object.
  void on_gone(Callback gone) { gone_ = std::move(gone); }
  /// `drained` runs once, when no more than `bytes` of the answer are buffered; in a later round of
  /// the loop where that is so already.
  void on_drained(std::size_t bytes, Callback drained);
  /// Bytes of the answer that the network has not taken yet.
  [[nodiscard]] std::size_t buffered() const;

  /// Answers whole. Content-Length and Connection are added; `headers` and `body` are borrowed for
  /// the call. Precondition: not begun.
  void respond(int status, std::span<const WebHeader> headers, std::string_view body);
  /// Answers whole, with a Content-Type alone.
  void respond(int status, std::string_view content_type, std::string_view body);

  /// Begins an answer of unknown length (chunked; a client of HTTP/1.0 gets it until the end of the
  /// connection). The head leaves with the first bytes, or by flush(). Precondition: not begun.
  void begin(int status, std::span<const WebHeader> headers);
  void flush();
  /// Sends bytes of the body at once or buffers them. Where more than output_bytes_max would be
  /// buffered, the connection is broken and on_gone() follows. Precondition: begun.
  void send(std::string_view bytes);
  /// Ends the answer. Precondition: begun.
  void end();
  /// Breaks the connection; on_gone() does not follow.
  void abort();

 private:
  friend class WebConnection;

  WebConnection* connection_ = nullptr;
  std::unique_ptr<WebRequest> request_;
  Callback gone_;
};

class WebHandler {
 public:
  virtual ~WebHandler() = default;
  virtual void on_request(WebExchange exchange) = 0;
};

enum class PortSharing : std::uint8_t {
  kExclusive,
  kShared,  ///< SO_REUSEPORT: several processes listen, the kernel spreads clients over them
};

struct WebServerOptions {
  std::string address = "127.0.0.1:0";  ///< "HOST:PORT", numeric, "[::1]:80"; port 0: any
  PortSharing sharing = PortSharing::kExclusive;
  std::size_t header_bytes_max = std::size_t{64} << 10;
  std::size_t body_bytes_max = std::size_t{16} << 20;
  std::size_t output_bytes_max = std::size_t{8} << 20;  ///< buffered for a slow reader
  std::size_t connections_max = 20'000;                 ///< further ones are closed at once
  Duration idle_max = Duration::seconds(75);            ///< between requests
  Duration receive_max = Duration::seconds(60);         ///< from a request's first byte to its last
  Duration stall_max = Duration::seconds(30);           ///< buffered output without any progress
  /// The body of the answers that are made without the handler: by default plain text. Gets the
  /// status (400, 408, 413, 431, 500) and what is wrong; returns JSON.
  std::string (*error_body)(int status, std::string_view message) = nullptr;
};

class WebServer {
 public:
  /// Errors: the address is malformed or taken.
  [[nodiscard]] static Result<std::unique_ptr<WebServer>> listen(RealLoop& loop,
                                                                 const WebServerOptions& options,
                                                                 WebHandler& handler);
  /// Ends all connections; exchanges that live on are empty of their client, without on_gone().
  virtual ~WebServer() = default;

  /// "HOST:PORT" with the port chosen.
  [[nodiscard]] virtual const std::string& address() const = 0;
  [[nodiscard]] virtual std::size_t connections() const = 0;
  /// Accepts no more, closes idle connections, lets running exchanges end (their answers say
  /// Connection: close). `stopped` runs when no connection is left, in a later round.
  virtual void stop(Callback stopped) = 0;
};

}  // namespace orrery
