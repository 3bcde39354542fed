// node/agent/controller_session.hpp - an agent's session with its controllers: welcomed streams one
// after the other, which the channel (node/controllers/controller_channels.hpp) opens.
//
// Owned by the agent's process, used on its loop. What must arrive is resent by agent/agent.hpp;
// here a message without a welcomed stream is dropped.
// Invariant: all streams of a session are of one cluster and one node.
#pragma once

#include <optional>

#include "base/error.hpp"
#include "node/controller_channel.hpp"

namespace orrery {

class ControllerSession {
 public:
  /// `channel` is borrowed; it opens the streams that follow the first one.
  explicit ControllerSession(ControllerChannel& channel) : channel_(channel) {}
  ControllerSession(const ControllerSession&) = delete;
  ControllerSession& operator=(const ControllerSession&) = delete;

  /// Opens the first stream; `events`, which is borrowed, gets what comes from each stream.
  void open(const AgentOpening& opening, ChannelEvents& events) { channel_.open(opening, events); }
  /// Notes the welcome of the open stream: from now on messages are sent. Error: the welcome is of
  /// another cluster or node than the first one.
  [[nodiscard]] Status accept(const AgentWelcome& welcome);
  /// Notes that the stream was lost: until the welcome of the next one, messages are dropped.
  void lose() { welcomed_ = false; }
  /// Ends the present stream; none follows.
  void leave();

  /// Sends in order, or drops the message where no stream is welcomed.
  void send(AgentMessage message);
  /// Whether the open stream was welcomed.
  [[nodiscard]] bool welcomed() const { return welcomed_; }
  /// Returns the node that the first welcome named; before it, none.
  [[nodiscard]] NodeId node() const { return first_ ? first_->node : NodeId(); }

 private:
  ControllerChannel& channel_;
  std::optional<AgentWelcome> first_;  ///< the first welcome
  bool welcomed_ = false;
};

}  // namespace orrery
