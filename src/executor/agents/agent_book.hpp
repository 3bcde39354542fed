// executor/agents/agent_book.hpp - the connected agents: which one speaks for each node, its
// inventory, and the last notes of its ranks.
//
// Owned by the controller. Soft state: agents reconnect after a restart and report it again. One
// thread.
// Invariant: a node has at most one session, that of its newest agent.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "control/state/state.hpp"
#include "executor/agents/recent_jobs.hpp"
#include "executor/stragglers.hpp"
#include "fleet/fleet_map.hpp"
#include "node/agent_wire.hpp"

namespace orrery {

/// The controller's end of one agent's stream, made by the server.
class AgentSession {
 public:
  virtual ~AgentSession() = default;
  /// Sends a message, which may be lost.
  virtual void send(const ControllerMessage& message) = 0;
  /// Ends the stream; no message of it follows.
  virtual void close(const Error& why) = 0;
  /// Ends the stream, and tells the agent that another one has its node for good.
  virtual void replace(const Error& why) { close(why); }
};

/// An agent that was refused because another one speaks for its node.
struct RefusedAgent {
  std::string address;  ///< address that the agent gives for itself
  std::string why;
  Instant first;
  Instant last;
  std::uint32_t times = 0;
  bool final = false;  ///< it was told not to reconnect
};

/// The newest readings of a node.
struct HeardReading {
  NodeReading reading;
  Instant at;  ///< time of day of its arrival
};

struct AgentRecord {
  AgentSession* session = nullptr;  ///< none: not connected
  std::optional<AgentOpening> opening;
  std::optional<HeardReading> heard;  ///< this agent's newest readings
  Instant last;                       ///< when its newest message arrived
  std::optional<RefusedAgent> refused;
};

class AgentBook {
 public:
  /// `topology` outlives the book, or its use() of another.
  explicit AgentBook(const Topology& topology);
  /// Takes over a changed fleet: agents of nodes that stay keep their sessions. Returns the
  /// sessions of retired nodes, which the caller ends.
  [[nodiscard]] std::vector<AgentSession*> use(const Topology& topology, const FleetMap& map);

  [[nodiscard]] std::optional<NodeId> node_named(std::string_view name) const;
  [[nodiscard]] const AgentRecord& of(NodeId node) const { return agents_[node.value()]; }

  /// Opens a stream of an agent whose key holds the node. It replaces a session of the same agent,
  /// of another key, or one that is silent. Errors: no such node, or other accelerators than in the
  /// fleet; another agent is connected: kEnvironment while that one may be dead, then kInput.
  [[nodiscard]] Result<NodeId> open(const AgentOpening& opening, AgentSession& session,
                                    Instant now);
  /// Records that an agent was refused. Precondition: the node exists.
  const RefusedAgent& refuse(const AgentOpening& opening, RefusedAgent refused);
  /// Forgets a session that has ended. Returns its node, unless another session replaced it.
  std::optional<NodeId> close(const AgentSession& session);

  /// Notes that a message of the node's agent arrived.
  void note(NodeId node, Instant now) { agents_[node.value()].last = now; }
  /// Whether some connected node may run jobs of that POSIX user (empty: no user), according to the
  /// agents. Error (kInfeasible): every one of them would refuse it. O(nodes).
  [[nodiscard]] Status check_user(const std::string& run_as) const;

  void note(NodeId node, const AttemptNotes& notes);
  void note(NodeId node, HeardReading heard) { agents_[node.value()].heard = std::move(heard); }
  /// Returns the last notes of a job's ranks; nullptr: there are none. Kept for the 10,000 jobs
  /// that were last reported on, as their paces are.
  [[nodiscard]] const AttemptNotes* notes_of(JobId job) const;
  /// Returns how fast the ranks of an attempt compute, by node; empty for any but the newest
  /// attempt.
  [[nodiscard]] std::vector<NodePaces> paces_of(const AttemptId& id) const;

 private:
  [[nodiscard]] Status check(NodeId node, const AgentOpening& opening) const;
  [[nodiscard]] bool gives_way(const AgentRecord& holder, const AgentOpening& opening,
                               Instant now) const;

  const Topology* topology_;
  void name_nodes();
  std::unordered_map<std::string, NodeId> by_name_;
  std::vector<AgentRecord> agents_;  ///< by node
  void note_paces(NodeId node, const AttemptNotes& notes);

  static constexpr std::size_t kJobsMax = 10'000;
  RecentJobs<AttemptNotes> notes_{kJobsMax};
  struct JobPaces {
    std::uint32_t attempt = 0;
    std::map<NodeId, std::vector<RankPace>> nodes;
  };
  RecentJobs<JobPaces> paces_{kJobsMax};
};

}  // namespace orrery
