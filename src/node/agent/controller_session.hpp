// node/agent/controller_session.hpp - an agent's session with its controller: streams one after
// the other, each opened again after the one before was lost.
//
// Owned by the agent's process, used on its loop. What must arrive is resent by agent/agent.hpp;
// here a message without a welcomed stream is dropped.
// Invariant: all streams of a session are of one cluster and one node.
#pragma once

#include <optional>

#include "base/env.hpp"
#include "base/log.hpp"
#include "node/controller_channel.hpp"

namespace orrery {

class ControllerSession {
 public:
  static constexpr Duration kBackoffFirst = Duration::milliseconds(100);
  static constexpr Duration kBackoffMax = Duration::seconds(5);

  /// `channel` and `events` are borrowed; `events` gets what comes from each stream.
  ControllerSession(const Env& env, ControllerChannel& channel, const Log& log,
                    ChannelEvents& events)
      : env_(env), channel_(channel), log_(log), events_(events) {}
  ControllerSession(const ControllerSession&) = delete;
  ControllerSession& operator=(const ControllerSession&) = delete;
  ~ControllerSession();

  /// Opens the first stream. Each later one has the same opening.
  void open(AgentOpening opening);
  /// Notes the welcome of the open stream: from now on messages are sent. Error: the welcome is of
  /// another cluster or node than the first one.
  [[nodiscard]] Status accept(const AgentWelcome& welcome);
  /// Notes that the stream was lost and opens the next one after a random delay, which grows up to
  /// kBackoffMax until a stream is welcomed: agents that lost the controller together must not
  /// return together.
  void reopen(const Error& why);
  /// Stops sending: no stream follows the present one, which may have been lost.
  void leave() { welcomed_ = false; }
  void close() { channel_.close(); }

  /// Sends in order, or drops the message where no stream is welcomed.
  void send(AgentMessage message);
  /// Whether the open stream was welcomed.
  [[nodiscard]] bool welcomed() const { return welcomed_; }
  /// Returns the node that the first welcome named; before it, none.
  [[nodiscard]] NodeId node() const { return first_ ? first_->node : NodeId(); }

 private:
  void open_stream();

  Env env_;
  ControllerChannel& channel_;
  Log log_;
  ChannelEvents& events_;
  AgentOpening opening_;
  std::optional<AgentWelcome> first_;  ///< the first welcome
  bool welcomed_ = false;
  Duration backoff_ = kBackoffFirst;  ///< before the next stream
  std::optional<TimerId> timer_;      ///< of the next stream
};

}  // namespace orrery
