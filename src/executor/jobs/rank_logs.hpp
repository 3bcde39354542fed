// executor/jobs/rank_logs.hpp - where ranks run and have run, and how their output is fetched from
// the nodes.
//
// Owned by the controller; state and agents outlive it. Keeps the ends of logs that nodes have
// dropped, up to 64 MiB. Soft state: after a restart only the newest attempts, which the state
// names, can be found. One thread. Cost: O(log ranks) a call; a job's text is parsed when it is not
// the one parsed last.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/env.hpp"
#include "executor/agents/agent_book.hpp"
#include "fleet/fleet_map.hpp"

namespace orrery {

class RankLogs {
 public:
  RankLogs(const Env& env, const State& state, const AgentBook& agents)
      : env_(env), state_(state), agents_(agents) {}
  RankLogs(const RankLogs&) = delete;
  RankLogs& operator=(const RankLogs&) = delete;
  ~RankLogs();

  struct Asked {
    AttemptId attempt;
    LogQuestion what;
    std::optional<Instant> since = std::nullopt;  ///< also asks for AttemptLogPart::since_from
  };
  /// The source of the answer to a log question.
  enum class Source : std::uint8_t {
    kNode,
    kKept,    ///< the node has no log any more; this is the end that the controller keeps
    kSilent,  ///< the node did not answer in time; this is the end, if it is kept
    kAbsent,  ///< the node is not connected; this is the end, if it is kept
  };
  struct Answer {
    AttemptLogPart part;
    Source source = Source::kNode;
  };
  using Answered = std::function<void(const Answer&)>;
  /// Asks the node of a rank for the rank's output. `answered` is called once, possibly inside this
  /// call.
  void ask(const Asked& asked, Answered answered);

  struct Place {
    std::uint32_t gang = 0;
    std::uint32_t rank = 0;
    NodeId node;
  };
  /// Returns where an attempt may have a log, by gang and rank: one for each device, or one for
  /// each node if the job has one rank a node. For an attempt before the newest: only what this
  /// process of the controller has seen.
  [[nodiscard]] std::vector<Place> places(const AttemptId& attempt);
  /// Returns where the processes of a job's newest attempt are, by gang and rank.
  [[nodiscard]] std::vector<Place> rank_places(JobId job);

  /// The spec of a job; nullptr: it has no text, or nothing to launch. Valid until the next call.
  [[nodiscard]] const JobSpec* spec_of(JobId job);
  /// Notes that a launch of ranks was sent to a node.
  void note_launch(const LaunchRanks& launch, const NodeProgram& program, NodeId node);
  /// Takes over a changed fleet.
  void use(const FleetMap& map);

  /// Handles the answer of a node to ask(). Returns the attempt if another node was asked.
  [[nodiscard]] std::optional<AttemptId> take(NodeId node, const AttemptLogPart& part);
  /// Keeps the end of a log. Returns false if the node has no such rank.
  [[nodiscard]] bool keep(NodeId node, KeptLog log);
  /// Whether ranks of an attempt are on a node, or were before it was resized.
  [[nodiscard]] bool had_part(NodeId node, const AttemptId& attempt) const;

 private:
  struct Key {
    AttemptId attempt;
    std::uint32_t gang = 0;
    std::uint32_t rank = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Wait {
    Asked asked;
    NodeId node;  ///< node that was asked: no other may answer
    Answered answered;
    TimerId timer;
  };
  [[nodiscard]] bool wrote_log(NodeId node, const Key& rank);
  /// `otherwise` is the reason why the node does not answer.
  [[nodiscard]] Answer kept_log(const Asked& asked, Source otherwise) const;
  [[nodiscard]] std::optional<NodeId> node_of(const Asked& asked);
  void answer(const Answer& answer);

  Env env_;
  const State& state_;
  const AgentBook& agents_;
  std::optional<std::pair<JobId, JobSpec>> last_spec_;
  std::map<Key, NodeId> ran_on_;  ///< ranks of the newest attempts
  std::map<Key, LogPart> kept_;
  std::deque<Key> kept_order_;
  std::size_t kept_bytes_ = 0;
  std::map<std::uint64_t, Wait> waits_;
  std::uint64_t numbers_ = 0;
};

}  // namespace orrery
