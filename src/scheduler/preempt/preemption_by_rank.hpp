// scheduler/preempt/preemption_by_rank.hpp - preemption by right and rank
// (PreemptionRule::kEntitled): a tenant takes back what others borrow, and higher ranks take from
// lower ones.
//
// Belongs to one pass. Whether a plan is justified as a whole is judged by
// DeviceTaking::unjustified().
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/forecast/waiting_queue.hpp"
#include "scheduler/preempt/device_taking.hpp"

namespace orrery {

class PreemptionByRank {
 public:
  PreemptionByRank(PassContext& pass, LeavingJobs& leaving, DeviceTaking& taking);

  /// Whether the job has room now. A refusal is shared by a class of jobs, the right to preempt
  /// belongs to the job's tenant and rank.
  bool make_room(const QueuedJob& queued, const Refusal& refusal);

 private:
  /// The right of a tenant to take devices of a type from another tenant.
  enum class Claim : std::uint8_t { kNotAsked, kNone, kByRank, kRight };

  /// Positions among the running, ascending.
  [[nodiscard]] std::vector<std::uint32_t> who_may_yield(const WaitingJob& job);
  /// Whether no preemptible job of a tenant may be preempted; `lowest` is the lowest rank among
  /// them.
  [[nodiscard]] bool nobody_may_yield(const JobRequest& mine, TenantId theirs,
                                      std::int32_t lowest) const;
  /// `claims` of the job's tenant: by the other tenant, then the type.
  [[nodiscard]] bool may_yield(const WaitingJob& job, const RunningJob& running,
                               std::span<Claim> claims);

  PassContext& pass_;
  const Situation& s_;
  const Policy& policy_;
  LeavingJobs& leaving_;
  DeviceTaking& taking_;
  std::vector<LeaverList> by_asker_;
};

}  // namespace orrery
