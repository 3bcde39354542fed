// executor/agent_book.hpp - the agents that are connected: who speaks for which node, what was
// found there, and what their ranks last said.
//
// Owned by the controller. Soft: agents come again after a restart and say the same. One thread.
// Invariant: a node has one session at most, that of its newest agent.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "control/state.hpp"
#include "executor/stragglers.hpp"
#include "node/agent_wire.hpp"

namespace orrery {

/// The controller's end of one agent's stream, made by the server.
class AgentSession {
 public:
  virtual ~AgentSession() = default;
  /// May be lost.
  virtual void send(const ControllerMessage& message) = 0;
  /// Ends the stream; nothing more comes of it.
  virtual void close(const Error& why) = 0;
  /// The same, and tells the agent that another one has its node for good.
  virtual void replace(const Error& why) { close(why); }
};

/// An agent that was not let in because another one speaks for its node.
struct RefusedAgent {
  std::string address;  ///< where it is reached, as it says
  std::string why;
  Instant first;
  Instant last;
  std::uint32_t times = 0;
  bool final = false;  ///< it was told not to come again
};

/// What a node last read of itself.
struct HeardReading {
  NodeReading reading;
  Instant at;  ///< the time of day it came
};

struct AgentRecord {
  AgentSession* session = nullptr;  ///< none: not connected
  std::optional<AgentOpening> opening;
  std::optional<HeardReading> heard;  ///< of this agent
  Instant last;                       ///< when something came of it last
  std::optional<RefusedAgent> refused;
};

class AgentBook {
 public:
  explicit AgentBook(const Topology& topology);

  [[nodiscard]] std::optional<NodeId> node_named(std::string_view name) const;
  [[nodiscard]] const AgentRecord& of(NodeId node) const { return agents_[node.value()]; }

  /// A stream is opened, by an agent whose key holds the node. It takes the place of a session that
  /// is of the same agent, of another key, or silent. Errors: no such node, or it has other
  /// accelerators than the fleet says; another agent is connected: kEnvironment while that may be
  /// dead, then kInput.
  [[nodiscard]] Result<NodeId> open(const AgentOpening& opening, AgentSession& session,
                                    Instant now);
  /// Keeps that an agent was not let in. Precondition: the node is there.
  const RefusedAgent& refuse(const AgentOpening& opening, RefusedAgent refused);
  /// It is gone; its session is not used any more. Whose it was, unless another took its place.
  std::optional<NodeId> close(const AgentSession& session);

  /// Something came of its agent.
  void note(NodeId node, Instant now) { agents_[node.value()].last = now; }
  /// Whether some connected node may run jobs of that POSIX user (empty: of none), as far as their
  /// agents told. Error (kInfeasible): every one of them would refuse it. O(nodes).
  [[nodiscard]] Status check_user(const std::string& run_as) const;

  void note(NodeId node, const AttemptNotes& notes);
  void note(NodeId node, HeardReading heard) { agents_[node.value()].heard = std::move(heard); }
  /// What the ranks of a job last said; nullptr: nothing.
  [[nodiscard]] const AttemptNotes* notes_of(JobId job) const;
  /// How fast the ranks of an attempt compute, by node; of others than the newest nothing is known.
  [[nodiscard]] std::vector<NodePaces> paces_of(const AttemptId& id) const;

 private:
  [[nodiscard]] Status check(NodeId node, const AgentOpening& opening) const;
  [[nodiscard]] bool gives_way(const AgentRecord& holder, const AgentOpening& opening,
                               Instant now) const;

  const Topology& topology_;
  std::unordered_map<std::string, NodeId> by_name_;
  std::vector<AgentRecord> agents_;  ///< by node
  void note_paces(NodeId node, const AttemptNotes& notes);

  std::map<JobId, AttemptNotes> notes_;
  struct JobPaces {
    std::uint32_t attempt = 0;
    std::map<NodeId, std::vector<RankPace>> nodes;
  };
  std::map<JobId, JobPaces> paces_;
};

}  // namespace orrery
