// executor/command_book.hpp - the commands that clients run beside ranks: which node has each, and
// who hears what it says.
//
// Owned by the controller, on its loop. Nothing of it is durable: a command ends with the stream of
// its node's agent, and with the controller.
// Invariant: each command that is opened has exactly one end reported, unless it is closed first.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "base/env.hpp"
#include "executor/agent_book.hpp"

namespace orrery {

class CommandBook {
 public:
  struct Hears {
    std::function<void(const ExecOutput&)> output;
    std::function<void(const ExecEnd&)> end;
  };

  /// Both are borrowed.
  CommandBook(const AgentBook& agents, Entropy& entropy) : agents_(agents), entropy_(entropy) {}

  /// Has the agent of a node run a command; its number is drawn here. `hears` is never called
  /// inside. Errors (kInfeasible): the agent is not connected, or of a release that runs none.
  [[nodiscard]] Result<std::uint64_t> open(NodeId node, AttemptExecOpen command, Hears hears);
  /// More for a command; nothing where it has ended.
  void tell(const ExecInput& input);
  /// Ends a command whose client has gone.
  void close(std::uint64_t id);

  /// From the agent of a node.
  void hear(NodeId node, const ExecOutput& output);
  void hear(NodeId node, const ExecEnd& end);
  /// The stream of the node's agent has ended, and with it the commands there.
  void lose(NodeId node, const std::string& name);

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
