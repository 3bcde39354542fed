// twin/outages/node_outages.hpp - faults of nodes: what they do to the jobs there, what control
// learns of them, and when the nodes are repaired.
//
// Owned by the World. Repairing a node does not mend its network, nor does mending its network
// repair the node. One thread. Cost: O(jobs on the node) a fault.
// Invariant: a node that is out by a reported fault waits for a repair until it is repaired, or
// until a repair without spare parts is ordered. A node that was drained at the report never waits:
// its operator has it repaired.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "control/action.hpp"
#include "control/input.hpp"
#include "control/state/state.hpp"
#include "twin/outages/active_faults.hpp"
#include "twin/outages/silent_nodes.hpp"
#include "twin/runs/job_runs.hpp"
#include "twin/world/agenda.hpp"

namespace orrery {

class NodeOutages {
 public:
  struct Parts {
    Agenda& agenda;
    ActiveFaults& faults;
    JobRuns& runs;
    SilentNodes& silent;
  };
  /// The parts must outlive it.
  explicit NodeOutages(const Parts& parts) : parts_(parts) {}

  /// The fault strikes a node that is there.
  void strike(NodeId node, std::uint32_t index, const State& state, Instant now);
  /// A fault is detected: control decides what to do about the jobs there.
  [[nodiscard]] std::optional<InputKind> detect(const WorldEvent& event, const State& state);
  /// A fault is over that control orders no repair for: it took no node, or the node was drained.
  /// Jobs there run as fast as the node's other faults allow.
  void end(const WorldEvent& event, const State& state, Instant now);
  /// Control orders the repair of a node.
  void order_repair(NodeId node, Instant now);
  /// The node is repaired, or reaches others again. Reports it unless another fault keeps it out.
  [[nodiscard]] std::optional<InputKind> repaired(const WorldEvent& event, Instant now);
  /// Whether no node waits for a repair or is in it.
  [[nodiscard]] bool all_repaired() const { return repair_.empty(); }

 private:
  void strike_jobs(NodeId node, std::uint32_t index, const State& state);

  Parts parts_;
  /// Time of the repair, of nodes that wait for it or are in it; max: no spare parts.
  std::map<NodeId, Duration> repair_;
};

}  // namespace orrery
