// api/http/http_exchange.hpp - one HTTP request between libmicrohttpd's thread and the loop: its
// pending answer, and whether the connection waits for it.
//
// Shared by the connection and by the call; any thread. Invariant: a connection is suspended at
// most once at a time, and resumed by the thread that brings what it waits for.
#pragma once

#include <microhttpd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "api/grpc/call.hpp"
#include "api/http/http_routes.hpp"

namespace orrery {

class HttpExchange {
 public:
  explicit HttpExchange(MHD_Connection* connection) : connection_(connection) {}

  HttpRequest request;     ///< while it is read, by libmicrohttpd's thread alone
  bool too_large = false;  ///< used while the request is read, by libmicrohttpd's thread alone

  // --- libmicrohttpd's thread

  /// The connection waits until there is something to answer.
  void wait();
  /// Queues the answer on the connection. Precondition: there is something to answer.
  [[nodiscard]] MHD_Result answer(const std::shared_ptr<HttpExchange>& self);
  [[nodiscard]] bool answered() const { return answered_; }
  /// Whether there is something to answer.
  [[nodiscard]] bool ready() const;
  /// Copies bytes of a stream to `into`, or suspends the connection where there are none yet. A
  /// stream that ends with an error is cut without the chunk that ends an answer, so that a client
  /// cannot take it for complete.
  [[nodiscard]] ssize_t take(char* into, std::size_t most);
  /// The connection is gone.
  void close();

  // --- The loop

  /// Messages are sent as events, the first of which opens the stream; an error before it is an
  /// answer with its own code.
  void stream_events() { streams_ = true; }
  /// Answers that the stream has begun, before there is an event.
  void open();
  void put(std::string_view json);
  void put_text(std::string_view type, std::string text);
  void put_comment();
  /// Calls `ready` once, in any thread: when no bytes of a stream wait to be taken, or the client
  /// wants no more. A call before that replaces the earlier one.
  void when_taken(std::function<void()> ready);
  void end(const CallStatus& status);
  /// Ends it with a redirection (307) to the URL.
  void redirect(std::string url);
  [[nodiscard]] bool wanted() const { return wanted_; }

 private:
  static constexpr std::size_t kWaitingBytesMax = std::size_t{8} << 20;

  void begin_stream();
  void add(std::string_view bytes);
  void add_end(const CallStatus& status);
  void resume();
  [[nodiscard]] std::function<void()> due();

  mutable std::mutex mutex_;
  MHD_Connection* connection_;  ///< guarded, as all below; nullptr: gone
  bool suspended_ = false;
  bool ready_to_answer_ = false;  ///< there is something to answer
  bool streams_ = false;          ///< set before the method is called
  bool stream_ = false;           ///< has begun
  bool ended_ = false;
  CallStatus status_;
  struct Head {
    std::string type = "application/json";
    std::string location;  ///< of a redirection; empty: it is none
  } head_;
  std::string bytes_;
  std::size_t taken_ = 0;  ///< of `bytes_`, by the connection
  std::function<void()> ready_;
  bool answered_ = false;  ///< of libmicrohttpd's thread
  std::atomic<bool> wanted_ = true;
};

/// {"code": 5, "message": ".."}
[[nodiscard]] std::string error_json(const CallStatus& status);

}  // namespace orrery
