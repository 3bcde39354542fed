// scheduler/preempt/device_taking.hpp - takes devices from running jobs for a waiting one: chooses
// the victims (scheduler/preempt/preemption.hpp) and carries the plan out.
//
// Belongs to one pass. The caller says which running jobs may be touched, what each costs, and
// which plans must not be carried out. Invariants:
// 1. The job starts, or its devices are reserved until all of its victims have left.
// 2. A victim that can go on with fewer devices does so, unless its own tenant is at a limit.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/preempt/leaving_jobs.hpp"
#include "scheduler/preempt/preemption.hpp"

namespace orrery {

/// The vain searches that a pass makes, counted apart for preemption and for overtaking: each looks
/// at many jobs.
inline constexpr std::uint32_t kVainPreemptions = 32;

class DeviceTaking {
 public:
  /// The running jobs from which devices may be taken, and what decides between them.
  struct From {
    std::span<const std::uint32_t> who;  ///< positions among the running, ascending
    /// Cost of ending a running job, in device-milliseconds or any other unit.
    std::function<std::int64_t(std::uint32_t)> cost;
    /// Returns a victim that must not be in a plan; none: the plan may be carried out.
    std::function<std::optional<std::uint32_t>(const PreemptionPlan&)> object;
    /// kOwnTenant: the job's tenant is at a limit, and has room again for what its own jobs leave.
    FreedBy freed_by = FreedBy::kOthers;
  };

  DeviceTaking(PassContext& pass, StartSearch& search, LeavingJobs& leaving,
               PreemptionScratch& scratch);

  /// Starts the job where it fits as it is, else takes devices; returns whether it has room now.
  /// Counts a vain search.
  bool preempt(const WaitingJob& job, const From& from);
  /// Precondition: the job does not fit as it is.
  bool take(const WaitingJob& job, const From& from);

  /// Whether as many searches were in vain as a pass makes.
  [[nodiscard]] bool gives_up() const { return vain_ >= kVainPreemptions; }
  [[nodiscard]] std::uint32_t vain() const { return vain_; }
  void count_vain() { ++vain_; }

  // For objections, while a plan is made:
  [[nodiscard]] const RunningJob& victim(const Yield& yield) const {
    return s_.running[who_[yield.victim]];
  }
  [[nodiscard]] std::vector<UsageChange> changes_of(const WaitingJob& job,
                                                    const PreemptionPlan& plan) const;
  /// A victim for which the plan is not justified by right or rank; none: all of it is.
  [[nodiscard]] std::optional<std::uint32_t> unjustified(const WaitingJob& job,
                                                         const PreemptionPlan& plan) const;

  /// The largest smaller size of a running job that fits beside `kept`.
  [[nodiscard]] std::optional<PlannedStart> smaller_of(const RunningJob& job,
                                                       std::span<const PlacedGang> kept);
  /// Whether a job may take devices that are kept for others.
  [[nodiscard]] bool may_use_kept(const WaitingJob& job, const PlannedStart& found);
  /// The usual cost of ending a running job.
  [[nodiscard]] std::int64_t lost_device_milliseconds(std::uint32_t running) const;

 private:
  /// Starts a job for which there is room; no value: there is no room; false: that room is kept for
  /// other jobs.
  [[nodiscard]] std::optional<bool> start_as_it_is(const WaitingJob& job);
  void carry_out(const WaitingJob& job, PreemptionPlan plan, FreedBy freed_by);
  /// Resizes a victim and returns the gang that it goes on with; nothing if it has to stop.
  [[nodiscard]] std::optional<PlacedGang> shrink(const RunningJob& job, JobId in_favour_of,
                                                 std::span<const PlacedGang> kept);

  PassContext& pass_;
  const Situation& s_;
  const Policy& policy_;
  StartSearch& search_;
  LeavingJobs& leaving_;
  PreemptionScratch& scratch_;
  std::vector<std::uint32_t> who_;  ///< running job, by victim of the plan being made
  std::uint32_t vain_ = 0;          ///< vain searches of preempt(), and those of count_vain()
};

}  // namespace orrery
