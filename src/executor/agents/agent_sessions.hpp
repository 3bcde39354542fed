// executor/agents/agent_sessions.hpp - the controller's side of its agents: opens and closes their
// sessions, believes of a message only what its node may say, and sends orders with their programs.
//
// Owned by the controller, on its loop; the server makes the sessions. An agent knows its node by a
// number that stays when the fleet changes (NodeRecord::number); ids of nodes are used inside only.
// Soft state: agents connect again after a start.
// Invariant: a message changes only what belongs to the ranks and commands of its own node. Cost of
// a heartbeat: O(1).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/env.hpp"
#include "base/log.hpp"
#include "control/state/state.hpp"
#include "executor/agents/agent_book.hpp"
#include "executor/agents/agent_keys.hpp"
#include "executor/agents/command_book.hpp"
#include "executor/agents/lent_nodes.hpp"
#include "executor/jobs/launch_program.hpp"
#include "executor/jobs/rank_logs.hpp"
#include "executor/live/control_clock.hpp"
#include "executor/live/live_counts.hpp"
#include "fleet/fleet_map.hpp"

namespace orrery {

class AgentSessions {
 public:
  struct Options {
    std::uint64_t cluster = 0;  ///< the number that agents know the cluster by
    const State& state;
    ControlClock clock;
    LentNodes lent;
    LiveCounts& counts;
    AgentKeys keys;
    std::string step_key;  ///< see LaunchPrograms
  };
  AgentSessions(const Env& env, const Log& log, Options options);
  AgentSessions(const AgentSessions&) = delete;
  AgentSessions& operator=(const AgentSessions&) = delete;

  void open(const AgentOpening& opening, AgentSession& session);
  void close(const AgentSession& session);
  /// Takes a message from an agent whose session is open; `number` is that of its AgentWelcome.
  /// Returns the report in it, with the ids of the fleet in use; none: the message has none, or its
  /// node was retired.
  [[nodiscard]] std::optional<Report> receive(NodeId number, const AgentMessage& message);

  /// Sends an order to its node, if the node is connected. A launch leaves only if the state is
  /// still in its epoch, because its program holds the present places of the gangs.
  void send(const Order& order);
  /// Makes a node test itself; its readings and an event report the result. Errors: jobs may run
  /// there, or its agent is not connected.
  [[nodiscard]] Status burn_in(NodeId node);

  /// Ends the session of a node that is not lent any more and has no ranks.
  void note(const NodeLent& event);
  /// Ends the commands on a node that is about to be retired.
  void lose_commands(NodeId node);
  /// Takes over a changed fleet, which the state has already; ends the sessions of retired nodes.
  void use(const FleetMap& map);

  [[nodiscard]] const AgentBook& agents() const { return agents_; }
  [[nodiscard]] AgentKeys& keys() { return keys_; }
  [[nodiscard]] RankLogs& logs() { return logs_; }
  [[nodiscard]] CommandBook& commands() { return commands_; }

 private:
  void refuse(const AgentOpening& opening, const Error& why, AgentSession& session);
  void log_refused(const AgentOpening& opening, const Error& why);
  void note_foreign(NodeId node, const AttemptId& attempt);
  void number_nodes();
  [[nodiscard]] Result<NodeId> admit(const AgentOpening& opening, AgentSession& session);
  [[nodiscard]] std::optional<NodeProgram> program_of(const LaunchRanks& launch, NodeId node);
  [[nodiscard]] std::string name_of(NodeId node) const;

  Log log_;
  const State& state_;
  ControlClock clock_;
  LentNodes lent_;
  LiveCounts& counts_;
  std::uint64_t cluster_;
  AgentKeys keys_;
  AgentBook agents_;
  CommandBook commands_;
  RankLogs logs_;
  LaunchPrograms launches_;
  std::unordered_map<std::uint32_t, NodeId> numbered_;  ///< nodes by NodeRecord::number
};

}  // namespace orrery
