// scheduler/explain/explain_trial.hpp - decides one waiting job under a hypothesis: alone, and in
// the pass that the scheduler would make.
//
// Alone, no other job waits and no job has a reservation: this answers quickly whether the fleet
// could hold it. In a pass, the whole queue, its reservations and preemption are as they are, so
// what starts there would start. explain() makes one for each answer. Invariant: no trial changes
// the answer of another.
#pragma once

#include "scheduler/explain/explain.hpp"
#include "scheduler/place/job_placer.hpp"

namespace orrery {

class ExplainTrial {
 public:
  ExplainTrial(const Situation& situation, const Policy& policy, const WaitingJob& job);

  /// The situation with the job alone, without reservations.
  [[nodiscard]] Situation situation() const;
  /// The whole situation, as a pass sees it.
  [[nodiscard]] const Situation& whole() const { return s_; }
  /// The policy without preemption.
  [[nodiscard]] const Policy& policy() const { return policy_; }
  [[nodiscard]] const WaitingJob& job() const { return job_; }
  [[nodiscard]] const JobRequest& request() const { return request_; }
  [[nodiscard]] const PlaceTree& tree() const { return tree_; }
  /// The place where the job fits, quotas and power aside.
  [[nodiscard]] std::optional<std::vector<PlacedGang>> place(const FleetView& view);

  [[nodiscard]] tl::expected<StartJob, Refusal> decide(const Situation& situation,
                                                       const Policy& policy);
  [[nodiscard]] tl::expected<StartJob, Refusal> decide(const Situation& situation) {
    return decide(situation, policy_);
  }
  /// Decides the job alone with another request.
  [[nodiscard]] tl::expected<StartJob, Refusal> decide(const JobRequest& request);

  /// How the job starts in the next pass if it asks for `request`, in a situation that equals
  /// whole() but for the hypothesis. None: it does not start, or no passes are left. Where
  /// reservations stay from one full pass to the next, it must start in either kind of pass.
  [[nodiscard]] std::optional<StartJob> starts(const Situation& changed, const JobRequest& request);
  [[nodiscard]] bool passes_left() const { return passes_ < passes_most_; }
  /// The number of changes that were decided in a pass.
  [[nodiscard]] std::uint32_t tried() const { return tried_; }

 private:
  void fill_queue(const Situation& changed, const JobRequest& request);
  [[nodiscard]] std::optional<StartJob> start_in_pass(const Situation& changed, PassKind kind);

  const Situation& s_;
  const Policy& as_is_;
  Policy policy_;
  JobRequest request_;  ///< without a class, so that no refusal is remembered for it
  WaitingJob job_;
  PlaceTree tree_;
  Scheduler scheduler_;
  JobPlacer placer_;
  std::uint32_t passes_most_ = 0;
  std::uint32_t passes_ = 0;
  std::uint32_t tried_ = 0;
  std::vector<WaitingJob> queue_;      ///< the job with the tried request, and the jobs that may
                                       ///< precede it
  std::vector<Reservation> reserved_;  ///< reservations of other jobs
};

/// Fills `changes` of the explanation, ascending by kind, and `tried`.
void find_changes(ExplainTrial& trial, const ExplainNames& names, Explanation& out);

}  // namespace orrery
