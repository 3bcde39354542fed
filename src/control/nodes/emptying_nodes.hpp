// control/nodes/emptying_nodes.hpp - draining and quarantined nodes that still have jobs.
//
// Once such a node is empty it is drained, or goes to repair. The state does not hold the set: it
// follows from the health of the nodes. Cost of settle(): O(emptying nodes).
#pragma once

#include <set>

#include "control/recorder.hpp"

namespace orrery {

class EmptyingNodes {
 public:
  explicit EmptyingNodes(Recorder& recorder) : recorder_(recorder), state_(recorder.state()) {}

  /// Adds a node that takes no more work and is to be settled when it is empty.
  void add(NodeId node) { nodes_.insert(node); }
  void remove(NodeId node) { nodes_.erase(node); }
  /// Settles the nodes that are empty now.
  void settle();
  /// Takes the nodes from the state instead. O(nodes of the fleet).
  void take_up_fleet();

 private:
  Recorder& recorder_;
  const State& state_;
  std::set<NodeId> nodes_;
};

}  // namespace orrery
