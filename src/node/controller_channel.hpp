// node/controller_channel.hpp - an agent's way to its controller, whatever carries it.
//
// The agent's process opens it, and again whenever it was lost; one stream at a time. Implemented
// over gRPC in src/api, and by tests. All on the loop; what is borrowed outlives the channel.
#pragma once

#include "node/agent_wire.hpp"

namespace orrery {

/// What a channel tells its user, never inside a call of the user's own.
class ChannelEvents {
 public:
  virtual ~ChannelEvents() = default;
  /// The first of a stream; nothing comes before it.
  virtual void on_welcome(const AgentWelcome& welcome) = 0;
  virtual void on_order(const NodeOrder& order) = 0;
  virtual void on_log_question(const AttemptLogQuestion& question) = 0;
  virtual void on_burn_in() = 0;
  virtual void on_command(const AttemptExecOpen& asked) = 0;
  virtual void on_command_input(const ExecInput& input) = 0;
  /// The stream is over, and nothing of it comes any more. ErrorKind::kInput: the controller does
  /// not want this agent, and would say so again; kInfeasible: another agent has its node for good.
  virtual void on_lost(const Error& why) = 0;
};

class ControllerChannel {
 public:
  virtual ~ControllerChannel() = default;
  /// Opens a stream and says `opening`. Whatever is wrong is told by on_lost. Precondition: no
  /// stream is open.
  virtual void open(const AgentOpening& opening, ChannelEvents& events) = 0;
  /// In order, perhaps lost with the stream; without one it is dropped. What the network does not
  /// take for a while is bounded: heartbeats give way first, then what is soft.
  virtual void send(AgentMessage message) = 0;
  /// Ends the stream without further events.
  virtual void close() = 0;
};

}  // namespace orrery
