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
};

class AgentBook {
 public:
  explicit AgentBook(const Topology& topology);

  [[nodiscard]] std::optional<NodeId> node_named(std::string_view name) const;
  [[nodiscard]] const AgentRecord& of(NodeId node) const { return agents_[node.value()]; }

  /// A stream is opened. An older session of the node is closed. Errors: no such node, or it has
  /// other accelerators than the fleet says; a newer agent of the node is connected.
  [[nodiscard]] Result<NodeId> open(const AgentOpening& opening, AgentSession& session);
  /// It is gone; its session is not used any more.
  void close(const AgentSession& session);

  void note(NodeId node, const AttemptNotes& notes);
  void note(NodeId node, HeardReading heard) { agents_[node.value()].heard = std::move(heard); }
  /// What the ranks of a job last said; nullptr: nothing.
  [[nodiscard]] const AttemptNotes* notes_of(JobId job) const;
  /// How fast the ranks of an attempt compute, by node; of others than the newest nothing is known.
  [[nodiscard]] std::vector<NodePaces> paces_of(const AttemptId& id) const;

 private:
  [[nodiscard]] Status check(NodeId node, const AgentOpening& opening) const;

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
