// api/http_exchange.hpp - one request of HTTP between libmicrohttpd's thread and the loop: what is
// to be answered, and whether the connection waits for it.
//
// Shared by the connection and by the call; any thread. Invariant: a connection is suspended at
// most once at a time, and resumed by whoever brings what it waits for.
#pragma once

#include <microhttpd.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "api/call.hpp"
#include "api/http_routes.hpp"

namespace orrery {

class HttpExchange {
 public:
  explicit HttpExchange(MHD_Connection* connection) : connection_(connection) {}

  HttpRequest request;     ///< while it is read, by libmicrohttpd's thread alone
  bool too_large = false;  ///< likewise

  // --- libmicrohttpd's thread

  /// The connection waits until there is something to answer.
  void wait();
  /// Queues the answer on the connection. Precondition: there is something to answer.
  [[nodiscard]] MHD_Result answer(const std::shared_ptr<HttpExchange>& self);
  [[nodiscard]] bool answered() const { return answered_; }
  /// Whether there is something to answer.
  [[nodiscard]] bool ready() const;
  /// Of a stream: bytes into `into`, or how libmicrohttpd says otherwise. It waits where there is
  /// nothing yet.
  [[nodiscard]] ssize_t take(char* into, std::size_t most);
  /// The connection is gone.
  void close();

  // --- The loop

  /// Messages are sent as events from here on.
  void begin_stream();
  void put(std::string_view json);
  void put_text(std::string_view type, std::string text);
  void put_comment();
  void end(const CallStatus& status);
  [[nodiscard]] bool wanted() const { return wanted_; }

 private:
  static constexpr std::size_t kWaitingBytesMax = std::size_t{8} << 20;

  void add(std::string_view bytes);
  void resume();

  mutable std::mutex mutex_;
  MHD_Connection* connection_;  ///< guarded, as all below; nullptr: gone
  bool suspended_ = false;
  bool ready_ = false;  ///< there is something to answer
  bool stream_ = false;
  bool ended_ = false;
  CallStatus status_;
  std::string type_ = "application/json";
  std::string bytes_;
  bool answered_ = false;  ///< of libmicrohttpd's thread
  std::atomic<bool> wanted_ = true;
};

/// {"code": 5, "message": ".."}
[[nodiscard]] std::string error_json(const CallStatus& status);

}  // namespace orrery
