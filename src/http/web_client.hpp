// http/web_client.hpp - HTTP/1.1 calls to servers, over connections that are kept and used again.
//
// Made by whatever calls; the loop outlives it, and it outlives its calls. All on the loop's
// thread. No callback runs inside start() or a call of a WebCall; after on_end(), on_error() or the
// end of the WebCall none follows. A call whose kept connection turns out to be closed by the
// server, with nothing of an answer received, is sent again on a new connection, once.
// Cost: one write and one read of the socket for a small call on a kept connection.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/system/real_loop.hpp"
#include "base/time.hpp"
#include "http/web_headers.hpp"

namespace orrery {

/// What to ask. Borrowed: method, target and headers for the call of start(); the body until the
/// answer's head, the failure or the end of the WebCall.
struct WebCallRequest {
  std::string_view method = "GET";
  std::string_view target = "/";
  std::span<const WebHeader> headers;  ///< Host and Content-Length are added
  std::string_view body;
};

struct WebResponseHead {
  int status = 0;
  WebHeaders headers;
};

struct WebCallFailure {
  enum class Kind : std::uint8_t {
    kAddress,    ///< no such endpoint
    kConnect,    ///< refused, unreachable, or no answer in time
    kBroken,     ///< the connection ended before the answer did
    kTimeout,    ///< the server was silent too long
    kMalformed,  ///< the answer is no HTTP, or beyond a limit
  };
  Kind kind = Kind::kConnect;
  bool sent = false;      ///< whether a byte of the request may have reached the server
  bool received = false;  ///< whether a byte of the answer has arrived
  Error error;
};

/// The events of one call; borrowed until its last. Each may destroy the WebCall, and start others.
class WebCallEvents {
 public:
  virtual ~WebCallEvents() = default;
  virtual void on_head(const WebResponseHead& head) = 0;
  /// All that arrived together, without transfer encoding; the bytes live until the call returns.
  virtual void on_body(std::string_view bytes) = 0;
  virtual void on_end() = 0;
  virtual void on_error(const WebCallFailure& failure) = 0;
};

class WebUpstream;

/// A running call. Movable; its end cancels the call and closes the connection.
class WebCall {
 public:
  WebCall() = default;
  /// Only the client makes calls that run, and gives them other connections.
  explicit WebCall(WebUpstream& upstream);
  void rebind(WebUpstream& upstream);
  WebCall(WebCall&& other) noexcept;
  WebCall& operator=(WebCall&& other) noexcept;
  WebCall(const WebCall&) = delete;
  WebCall& operator=(const WebCall&) = delete;
  ~WebCall() { cancel(); }

  [[nodiscard]] bool running() const { return upstream_ != nullptr; }
  void cancel();
  /// Stops and goes on reading the answer, for a reader of the answer that is slower than its
  /// server.
  void pause();
  void resume();

 private:
  friend class WebUpstream;
  WebUpstream* upstream_ = nullptr;
};

struct WebClientOptions {
  Duration connect_max = Duration::seconds(3);
  /// Without a byte of the answer. A machine that is gone is noticed within half a minute.
  Duration silence_max = Duration::max();
  Duration idle_max = Duration::seconds(60);  ///< of a kept connection
  std::size_t idle_connections_max = 256;     ///< kept by endpoint
  std::size_t header_bytes_max = std::size_t{64} << 10;
  /// Limit of an answer's body, which is passed on as it arrives: this bounds no memory.
  std::uint64_t body_bytes_max = std::uint64_t{1} << 40;
};

class WebClient {
 public:
  [[nodiscard]] static std::unique_ptr<WebClient> make(RealLoop& loop,
                                                       const WebClientOptions& options);
  /// Ends all calls without events.
  virtual ~WebClient() = default;

  /// Calls the server at "HOST:PORT" (numeric, or a name, which another thread looks up). Failures
  /// are told by on_error() in a later round.
  [[nodiscard]] virtual WebCall start(std::string_view endpoint, const WebCallRequest& request,
                                      WebCallEvents& events) = 0;
  /// Closes the kept connections of an endpoint that is no longer used.
  virtual void forget(std::string_view endpoint) = 0;
};

}  // namespace orrery
