// control/nodes/node_condition.hpp - whether nodes work: joined, silent, faulty, accused, repaired,
// lent or taken back; and what follows for the jobs on them.
//
// Invariant: the jobs on a node that is lost, or has started anew, continue without it or stop.
#pragma once

#include "control/jobs/job_life.hpp"
#include "control/nodes/claims.hpp"
#include "control/nodes/emptying_nodes.hpp"
#include "control/nodes/node_service.hpp"
#include "control/recorder.hpp"

namespace orrery {

class NodeCondition {
 public:
  /// The classes that the condition of nodes affects.
  struct Parts {
    EmptyingNodes& emptying;
    Claims& claims;
    JobLife& jobs;
    NodeService& service;
  };

  NodeCondition(Recorder& recorder, const Parts& parts)
      : recorder_(recorder), state_(recorder.state()), parts_(parts) {}

  void on(const FenceNode& command);
  void on(const NodeJoined& seen);
  void on(const NodeHeard& seen);
  void on(const NodeFault& seen);
  void on(const NodeRepaired& seen);
  void on(const NodeGranted& seen);
  void on(const NodeAbsent& seen);
  void on(const HoldRecorded& seen);

 private:
  void hear_claim(const NodeFault& seen);
  void clear_suspicions(JobId id);
  void lose(NodeId node, const Blame& blame);
  void ranks_gone_on(NodeId node);
  void take_back(NodeId node, NodeHealth health);
  [[nodiscard]] bool has_ranks(NodeId node) const;
  void detect_lemon_node(NodeId node);

  Recorder& recorder_;
  const State& state_;
  Parts parts_;
};

}  // namespace orrery
