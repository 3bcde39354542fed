// control/core/held_situation.hpp - the input of a full pass, unchanged while the state goes on.
//
// Made by State::hold for a pass beside the core, usually in another thread; any thread may destroy
// it. The fleet is shared page by page, requests of jobs are kept alive, the rest is copied.
// Immutable. Invariant: it does not change with the state that it was made from; only the facts of
// the setup must outlive it.
// Cost: O(waiting + running + nodes / page), some 10 ms for 100,000 jobs. Where jobs take turns in
// rounds, their history is sorted too: O(jobs x log), which doubles the time.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "control/submission.hpp"
#include "fleet/fleet.hpp"
#include "scheduler/plans/plan_table.hpp"
#include "scheduler/policy.hpp"
#include "scheduler/situation.hpp"

namespace orrery {

/// The past usage of a situation's jobs when it was held; empty where the policy does not need it.
class HeldHistory final : public DeviceHistory {
 public:
  HeldHistory(const Situation& of, const Policy& policy);
  [[nodiscard]] double device_seconds(JobId job, FleetTypeId type, Instant now) const override;
  [[nodiscard]] JobPast past(JobId job) const override;
  [[nodiscard]] const SharePeriod& share_period() const override { return period_; }

 private:
  void note(JobId job, const JobRequest& request, const Situation& of);

  std::vector<std::pair<std::pair<JobId, FleetTypeId>, double>> had_;  ///< ascending
  std::vector<std::pair<JobId, JobPast>> past_;                        ///< ascending
  SharePeriod period_;
};

class HeldSituation {
 public:
  /// The parts that are shared with the state rather than copied, and those not in the situation.
  struct Shared {
    std::uint64_t version = 0;
    const Policy& policy;
    std::shared_ptr<const FleetSnapshot> fleet;
    std::vector<std::shared_ptr<const Submission>> submissions;  ///< those of its jobs
    std::shared_ptr<const TenantTree> tenants;                   ///< none: the setup's
  };

  HeldSituation(const Situation& of, Shared shared);
  HeldSituation(const HeldSituation&) = delete;
  HeldSituation& operator=(const HeldSituation&) = delete;

  /// The number of events that the state had applied.
  [[nodiscard]] std::uint64_t version() const { return version_; }
  [[nodiscard]] const Policy& policy() const { return policy_; }
  /// Valid as long as this object.
  [[nodiscard]] const Situation& situation() const { return situation_; }

 private:
  std::uint64_t version_;
  Policy policy_;
  std::shared_ptr<const FleetSnapshot> fleet_;
  std::vector<std::shared_ptr<const Submission>> submissions_;
  std::shared_ptr<const TenantTree> tenants_;
  std::vector<WaitingJob> waiting_;
  std::vector<RunningJob> running_;
  std::vector<std::uint64_t> running_changes_;
  HeldHistory history_;
  TenantUsage usage_;
  std::optional<PowerBudget> power_;
  std::optional<PowerCaps> caps_;
  std::optional<PlanTable> plans_;
  std::vector<float> risk_;
  std::vector<Reservation> slots_;
  std::vector<Closure> closures_;
  Situation situation_;
};

}  // namespace orrery
