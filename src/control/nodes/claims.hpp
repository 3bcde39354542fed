// control/nodes/claims.hpp - claims of jobs against nodes. Any program can make a claim, so a claim
// may cost at most one node.
//
// 1. A job is believed against one node, ever; when it accuses another one, the program is at
//    fault, and a node that it had accused before returns to service unless its own checks failed.
// 2. For each top-level tenant, with all tenants below it, claims take at most one node out of
//    service at a time, and none once `claims_cleared` of their nodes passed burn-in within
//    `claim_window`. Beyond that the first claim of a job only excuses the job.
// 3. Text that a program wrote before it ended excuses a job once within `claim_window`.
// A claim that the node's own checks confirmed does not count.
#pragma once

#include <vector>

#include "control/nodes/emptying_nodes.hpp"
#include "control/recorder.hpp"

namespace orrery {

class Claims {
 public:
  Claims(Recorder& recorder, EmptyingNodes& emptying)
      : recorder_(recorder), state_(recorder.state()), emptying_(emptying) {}

  /// Returns the verdict on a claim, at most as severe as `claim.verdict`, and emits it. A node
  /// that is suspected is quarantined.
  ClaimVerdict judge(const NodeAccused& claim);
  /// Judges an end that its program blames on its machine (ExitKind::kClaim) and returns it as an
  /// end by the machine or by the program; returns other ends unchanged. Emits the verdict if there
  /// is a new one.
  [[nodiscard]] RanksEnded judged(const RanksEnded& seen);
  /// Returns the nodes that a job's claims took out of service.
  [[nodiscard]] std::vector<NodeId> suspected_by(JobId id) const;

 private:
  Recorder& recorder_;
  const State& state_;
  EmptyingNodes& emptying_;
};

}  // namespace orrery
