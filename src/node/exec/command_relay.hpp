// node/exec/command_relay.hpp - commands beside ranks on their way through the agent: from the
// controller to the keeper that runs them, and their output back.
//
// Owned by the agent's process, used on its loop. Commands belong to a stream of the controller and
// to a connection with a keeper, and end with the first of the two.
// Invariant: at most kCommandsMax commands are open on the node, so that their windows fit into
// what may wait on a connection. One whose client has gone is not open, although its process may
// take some seconds to end. Messages of a command that is not open reach neither side.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "node/agent/controller_session.hpp"
#include "node/keeper/keeper_link.hpp"

namespace orrery {

class CommandRelay {
 public:
  static constexpr std::size_t kCommandsMax = 32;

  /// `session` is borrowed; `node` is the node's name.
  CommandRelay(ControllerSession& session, std::string node)
      : session_(session), node_(std::move(node)) {}

  /// Passes a command on to the keeper of its attempt, or refuses it. `keeper`: nullptr: the
  /// attempt does not run here; else it lives until end() of the attempt.
  void open(const AttemptExecOpen& asked, KeeperHandle* keeper);
  void input(const ExecInput& input);
  void output(const ExecOutput& output);
  void end(const ExecEnd& end);
  /// Tells the controller that the commands of an attempt have ended.
  void end(const AttemptId& id, const std::string& why);
  /// Ends all commands, since the controller is out of reach.
  void close();

 private:
  struct Command {
    AttemptId attempt;
    KeeperHandle* keeper = nullptr;
  };

  /// Returns why the command may not run; empty: it may.
  [[nodiscard]] std::string refusal(const AttemptId& id, const KeeperHandle* keeper) const;

  ControllerSession& session_;
  std::string node_;
  std::map<std::uint64_t, Command> commands_;  ///< open commands, by number
};

}  // namespace orrery
