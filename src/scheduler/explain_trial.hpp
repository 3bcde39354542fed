// scheduler/explain_trial.hpp - decides one waiting job alone, under a hypothesis.
//
// Made by explain() for one answer. Invariant: no trial changes the answer of another.
#pragma once

#include "scheduler/explain.hpp"
#include "scheduler/job_placer.hpp"

namespace orrery {

class ExplainTrial {
 public:
  ExplainTrial(const Situation& situation, const Policy& policy, const WaitingJob& job);

  /// What a trial decides on: the job alone, nobody's slots.
  [[nodiscard]] Situation situation() const;
  /// The policy without preemption.
  [[nodiscard]] const Policy& policy() const { return policy_; }
  [[nodiscard]] const WaitingJob& job() const { return job_; }
  [[nodiscard]] const JobRequest& request() const { return request_; }
  [[nodiscard]] const PlaceTree& tree() const { return tree_; }
  /// Where the job fits, quotas and power aside.
  [[nodiscard]] std::optional<std::vector<PlacedGang>> place(const FleetView& view);

  [[nodiscard]] tl::expected<StartJob, Refusal> decide(const Situation& situation,
                                                       const Policy& policy);
  [[nodiscard]] tl::expected<StartJob, Refusal> decide(const Situation& situation) {
    return decide(situation, policy_);
  }
  /// With another request in the place of the job's.
  [[nodiscard]] tl::expected<StartJob, Refusal> decide(const JobRequest& request);

 private:
  const Situation& s_;
  Policy policy_;
  JobRequest request_;  ///< of no class: nothing is remembered of it
  WaitingJob job_;
  PlaceTree tree_;
  Scheduler scheduler_;
  JobPlacer placer_;
};

/// Fills `changes` of the explanation, ascending by kind.
void find_changes(ExplainTrial& trial, const ExplainNames& names, Explanation& out);

}  // namespace orrery
