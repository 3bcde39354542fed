// http/connection/web_connection.hpp - one client's connection of a WebServer: requests in turn,
// and their answers.
//
// The server makes one for each accepted socket and owns it. It never ends inside one of its own
// calls: die() closes the socket and hands it to the server's graveyard. Invariant: in kAnswering,
// and only there, an exchange that is not ended refers to it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "base/system/file_descriptor.hpp"
#include "base/system/real_loop.hpp"
#include "http/connection/answer_writer.hpp"
#include "http/connection/watched_socket.hpp"
#include "http/connection/web_server_shared.hpp"
#include "http/message_parser.hpp"
#include "http/web_server.hpp"

namespace orrery {

/// Where dead connections go, and posted work finds live ones.
class WebConnectionOwner {
 public:
  virtual ~WebConnectionOwner() = default;
  virtual void bury(std::uint64_t connection) = 0;
  /// Calls advance() of the connection in a later round, if it still lives.
  virtual void post_advance(std::uint64_t connection) = 0;
};

class WebConnection final : public ReadyHandler, public AnswerOutlet {
 public:
  WebConnection(WebServerShared& shared, WebConnectionOwner& owner, std::uint64_t id,
                FileDescriptor fd);
  WebConnection(const WebConnection&) = delete;
  WebConnection& operator=(const WebConnection&) = delete;
  ~WebConnection() override;

  /// Error: the system is out of memory for the watch.
  [[nodiscard]] Status start();
  void on_ready(std::uint32_t events) override;
  /// Reads on in bytes that have arrived already, and tells of drained output.
  void advance();
  /// Ends what is too late. Called about once a second.
  void check_time(Instant now);
  /// Closes an idle connection of a server that stops; otherwise the time of idleness begins.
  void settle();

  // The calls of its exchange.
  void adopt(WebExchange& exchange) { exchange_ = &exchange; }
  [[nodiscard]] std::string client() const;
  [[nodiscard]] AnswerWriter& answer() { return answer_; }
  [[nodiscard]] std::size_t buffered() const { return socket_.buffered(); }
  void on_drained(std::size_t bytes, Callback drained);
  void abort();
  /// The exchange is destroyed with its answer unfinished.
  void abandon();

 private:
  enum class Phase : std::uint8_t {
    kReceiving,  ///< a request, or nothing yet
    kAnswering,
    kFlushing,   ///< the last answer; closed when it has left
    kLingering,  ///< all has left; what still arrives is dropped, so that no reset overtakes it
    kDead,
  };
  struct Input {
    explicit Input(const MessageLimits& limits) : parser(limits) {}
    RequestParser parser;
    std::unique_ptr<WebRequest> request;  ///< in progress
    std::string bytes;                    ///< not consumed yet
    bool continued = false;               ///< whether "Expect: 100-continue" has been looked for
  };
  struct Drained {
    std::size_t bytes = 0;
    Callback callback;
  };

  void receive();
  void take(std::string_view bytes);
  void dispatch();
  void invite_body();
  void refuse(int status, std::string_view message);
  void put(std::initializer_list<std::string_view> pieces) override;
  void finish_answer() override;
  void flushed(OutputQueue::Outcome outcome);
  void tell_drained();
  void respond_error(int status, std::string_view message);
  void watch_input();
  void leave();
  void die();

  WebServerShared& shared_;
  WebConnectionOwner& owner_;
  std::uint64_t id_;
  WatchedSocket socket_;
  Phase phase_ = Phase::kReceiving;
  Instant deadline_ = Instant::max();
  Input in_;
  AnswerWriter answer_;
  WebExchange* exchange_ = nullptr;
  Drained drained_;
};

}  // namespace orrery
