// twin/outages/silent_nodes.hpp - nodes that send no heartbeats, and when control may take what ran
// there for gone.
//
// Owned by the World. A silent node cannot report that its ranks have ended, so devices and jobs
// wait for proof: the node reboots, an operator has cut it off, or the lease of the job has
// expired. A job whose effects are fenced waits for none of these; control decides that. One
// thread. Cost: O(log silent nodes) a node; nothing while every node is heard.
// Invariant: the events of a silence are void once the node is back.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "control/input.hpp"
#include "control/state/state.hpp"
#include "twin/outages/active_faults.hpp"
#include "twin/runs/job_runs.hpp"
#include "twin/world/agenda.hpp"
#include "twin/world/world_facts.hpp"

namespace orrery {

class SilentNodes {
 public:
  struct Parts {
    const WorldTiming& timing;
    Agenda& agenda;
    ActiveFaults& faults;
    JobRuns& runs;
  };
  /// The parts must outlive it.
  explicit SilentNodes(const Parts& parts) : parts_(parts) {}

  /// The fault silences the node; one that strikes a silent node only keeps it away longer.
  void fall_silent(NodeId node, const Fault& fault);
  /// Keeps the node away at least until then. Returns whether it is silent.
  bool keep_away(NodeId node, Instant until);
  [[nodiscard]] bool is_silent(NodeId node) const { return nodes_.contains(node); }
  /// When the node is back; Instant::max(): never. None: it is not silent.
  [[nodiscard]] std::optional<Instant> back_at(NodeId node) const;
  [[nodiscard]] bool has_ranks_of(const RunningJob& placed) const;

  /// Reports that ranks of earlier epochs are gone from nodes that are heard; none: there are none.
  [[nodiscard]] std::optional<InputKind> report_shed(const WorldEvent& event,
                                                     const State& state) const;
  /// Narrows the report that ranks which were to end are gone to the nodes that are heard; none: no
  /// node is left to report it.
  [[nodiscard]] std::optional<InputKind> narrow(RanksGone gone, const State& state) const;
  /// Handles an event of a silence. Returns what control learns by it.
  [[nodiscard]] std::optional<InputKind> step(const WorldEvent& event, const State& state,
                                              Instant now);

 private:
  struct Silence {
    Instant since;
    Instant back;  ///< Instant::max(): never, as parts are missing
    std::uint32_t serial = 0;
  };

  /// Returns how many nodes with ranks of the job are silent; `heard` receives the others.
  std::uint32_t split(const RunningJob& placed, std::vector<NodeId>& heard) const;
  [[nodiscard]] std::optional<InputKind> lose(const WorldEvent& event, const State& state,
                                              Instant now);
  [[nodiscard]] std::optional<InputKind> come_back(const WorldEvent& event, const State& state,
                                                   Instant now);
  /// Reports, one at a time, that attempts which may have ranks on a silent node are gone there.
  [[nodiscard]] std::optional<InputKind> report_gone(const WorldEvent& event, const State& state,
                                                     Instant now);

  Parts parts_;
  std::map<NodeId, Silence> nodes_;
  std::uint32_t silences_ = 0;  ///< so far
};

}  // namespace orrery
