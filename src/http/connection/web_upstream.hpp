// http/connection/web_upstream.hpp - one connection of a WebClient to an endpoint, with at most one
// call.
//
// The client makes and owns it. It never ends inside one of its own calls: die() closes the socket
// and hands it to the client's graveyard. Invariant: in kIdle, and only there, its pool lists it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/system/real_clock.hpp"
#include "base/system/real_loop.hpp"
#include "base/system/socket_address.hpp"
#include "http/connection/watched_socket.hpp"
#include "http/message_parser.hpp"
#include "http/web_client.hpp"

namespace orrery {

class WebUpstream;

/// The connections to one endpoint.
struct WebPool {
  std::string endpoint;
  std::optional<SocketAddress> address;
  std::vector<WebUpstream*> idle;        ///< the one used last at the end
  std::vector<std::uint64_t> resolving;  ///< upstreams that wait for the address
  std::size_t upstreams = 0;             ///< all of them
  bool forgotten = false;
};

/// What the connections of a client share.
struct WebClientShared {
  RealLoop& loop;
  const WebClientOptions options;
  RealClock clock;
  std::unique_ptr<char[]> chunk;  ///< for the read in progress
  std::string body;               ///< of the read in progress
};

/// One call, apart from the connection that carries it.
struct WebUpstreamCall {
  WebCall* handle = nullptr;
  WebCallEvents* events = nullptr;  ///< null: none runs
  std::string head;
  std::string_view body;
  AnswerBody answer_body = AnswerBody::kAsFramed;
  bool reused = false;    ///< its connection had carried another call
  bool sent = false;      ///< some of it may have reached the server
  bool received = false;  ///< some of an answer has arrived
  bool told = false;      ///< on_head() was called
};

/// The client, as its connections see it.
class WebUpstreamOwner {
 public:
  virtual ~WebUpstreamOwner() = default;
  virtual void bury(std::uint64_t upstream) = 0;
  /// Carries the call on a new connection.
  virtual void call_again(WebPool& pool, WebUpstreamCall call) = 0;
  /// Calls fail_late() of the upstream in a later round, if it still lives.
  virtual void post_failure(std::uint64_t upstream, std::string why) = 0;
};

class WebUpstream final : public ReadyHandler {
 public:
  WebUpstream(WebClientShared& shared, WebUpstreamOwner& owner, WebPool& pool, std::uint64_t id);
  WebUpstream(const WebUpstream&) = delete;
  WebUpstream& operator=(const WebUpstream&) = delete;
  ~WebUpstream() override;

  /// Connects to the address of the pool. Failures are told in a later round.
  void connect();
  /// Sends a call, now or once connected. Precondition: it has none.
  void carry(WebUpstreamCall call);
  void on_ready(std::uint32_t events) override;
  void fail_late(WebCallFailure::Kind kind, const std::string& why) { fail(kind, why); }
  void check_time(Instant now);
  /// Closes an idle connection.
  void drop_idle();
  [[nodiscard]] WebPool& pool() { return pool_; }

  // The calls of its WebCall.
  void adopt(WebCall& handle) { call_.handle = &handle; }
  void cancel();
  void pause() { socket_.watch_input(0); }
  void resume() { socket_.watch_input(EPOLLIN); }

 private:
  enum class Phase : std::uint8_t { kResolving, kConnecting, kCalling, kIdle, kDead };

  void finish_connecting();
  void send_call();
  void receive();
  void take(std::string_view bytes);
  void tell_part();
  void finish();
  void server_left(const std::string& why);
  void fail(WebCallFailure::Kind kind, const std::string& why);
  void release_handle();
  void begin_answer();
  void die();

  WebClientShared& shared_;
  WebUpstreamOwner& owner_;
  WebPool& pool_;
  std::uint64_t id_;
  WatchedSocket socket_;
  Phase phase_ = Phase::kResolving;
  Instant deadline_ = Instant::max();
  WebUpstreamCall call_;
  struct In {
    explicit In(const MessageLimits& limits) : parser(limits) {}
    ResponseParser parser;
    WebResponseHead head;
    std::string bytes;  ///< not consumed yet
  } in_;
};

}  // namespace orrery
