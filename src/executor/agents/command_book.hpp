// executor/agents/command_book.hpp - the commands that clients run beside ranks: the node of each,
// and the receiver of its output.
//
// Owned by the controller, on its loop. Not durable: a command ends with the stream of its node's
// agent, and with the controller.
// Invariant: exactly one end is reported for each opened command, unless it is closed first.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "base/env.hpp"
#include "executor/agents/agent_book.hpp"

namespace orrery {

class CommandBook {
 public:
  struct Hears {
    std::function<void(const ExecOutput&)> output;
    std::function<void(const ExecEnd&)> end;
  };

  /// Both arguments outlive the book.
  CommandBook(const AgentBook& agents, Entropy& entropy) : agents_(agents), entropy_(entropy) {}

  /// Makes the agent of a node run a command; its number is drawn here. `hears` is never called
  /// inside. Errors (kInfeasible): the agent is not connected, or its release cannot run commands.
  [[nodiscard]] Result<std::uint64_t> open(NodeId node, AttemptExecOpen command, Hears hears);
  /// Sends input to a command; no effect if it has ended.
  void tell(const ExecInput& input);
  /// Ends a command whose client has disconnected.
  void close(std::uint64_t id);

  /// Handles a message from the agent of a node.
  void hear(NodeId node, const ExecOutput& output);
  void hear(NodeId node, const ExecEnd& end);
  /// The stream of the node's agent has ended, and with it all commands there.
  void lose(NodeId node, const std::string& name);
  /// Takes over a changed fleet. Precondition: no command runs on a retired node.
  void use(const FleetMap& map);

 private:
  struct Command {
    NodeId node;
    Hears hears;
  };
  void send(NodeId node, const ControllerMessage& message) const;

  const AgentBook& agents_;
  Entropy& entropy_;
  std::map<std::uint64_t, Command> commands_;
};

}  // namespace orrery
