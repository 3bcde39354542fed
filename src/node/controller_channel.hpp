// node/controller_channel.hpp - an agent's connection to its controller, whatever carries it.
//
// Implemented over gRPC in src/api for one controller and one stream at a time. ControllerChannels
// (node/controllers/controller_channels.hpp) presents such channels as one, which opens its streams
// again by itself, so that a ControllerSession opens it once. All on the loop; what is borrowed
// outlives the channel.
#pragma once

#include "node/agent_wire.hpp"

namespace orrery {

/// The events of a channel, never called inside a call of the user's own.
class ChannelEvents {
 public:
  virtual ~ChannelEvents() = default;
  /// The first message of a stream; nothing comes before it.
  virtual void on_welcome(const AgentWelcome& welcome) = 0;
  virtual void on_order(const NodeOrder& order) = 0;
  virtual void on_log_question(const AttemptLogQuestion& question) = 0;
  virtual void on_burn_in() = 0;
  virtual void on_command(const AttemptExecOpen& asked) = 0;
  virtual void on_command_input(const ExecInput& input) = 0;
  /// The stream is over, and nothing more comes from it. ErrorKind::kInput: the controller refuses
  /// this agent, and would refuse it again; kInfeasible: another agent has its node for good.
  virtual void on_lost(const Error& why) = 0;
};

class ControllerChannel {
 public:
  virtual ~ControllerChannel() = default;
  /// Opens a stream and sends `opening`. Failures are reported by on_lost. Precondition: no stream
  /// is open.
  virtual void open(const AgentOpening& opening, ChannelEvents& events) = 0;
  /// Sends in order; the message may be lost with the stream, and is dropped without one. What the
  /// network does not take for a while is bounded: heartbeats are dropped first, then soft
  /// messages.
  virtual void send(AgentMessage message) = 0;
  /// Ends the stream without further events. It may be called inside an event.
  virtual void close() = 0;
};

}  // namespace orrery
