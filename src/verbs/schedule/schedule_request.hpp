// verbs/schedule/schedule_request.hpp - a fleet, its tenants and a queue of jobs, as files: the
// input of the verb `schedule`.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "fleet/fleet.hpp"
#include "scheduler/admission.hpp"
#include "scheduler/place/pristine_fleet.hpp"
#include "scheduler/plans/class_table.hpp"
#include "scheduler/plans/plan_sizes.hpp"
#include "scheduler/price/gang_pricing.hpp"
#include "scheduler/scheduler.hpp"
#include "verbs/command_options.hpp"

namespace orrery {

/// The options as typed; empty: not given.
struct ScheduleOptions {
  std::string fleet;
  std::string tenants;
  std::string policy = "hardware-aware";
  std::vector<std::string> jobs;  ///< files, or directories of them
  std::string explain;            ///< name of a job
  std::string failures = "none";  ///< a failure profile, by name or file
  std::string by;                 ///< deadline of each of them
  std::string under;              ///< budget of each of them
};

/// A job that no part of this fleet can ever run.
struct RefusedJob {
  std::string name;
  std::string why;
};

/// A job that waits for other jobs to end: at the start none has ended.
struct HeldJob {
  std::string name;
  std::vector<std::string> after;  ///< names
};

/// The loaded input, at stable addresses.
class ScheduleRequest {
 public:
  /// Empty; load() fills it.
  ScheduleRequest() = default;
  /// Errors: those of the files, with their line; an unknown policy, with the nearest.
  [[nodiscard]] static Result<std::unique_ptr<ScheduleRequest>> load(const CommandOptions& options,
                                                                     const ScheduleOptions& asked);

  /// Decides with all jobs waiting at one instant; makes missing plans, and decides again.
  [[nodiscard]] PassResult decide();

  /// A note for each job that has a deadline or a budget, before the decision is carried out:
  /// whether these can be kept.
  struct Bound {
    std::string name;
    Admission admission;
  };
  [[nodiscard]] std::vector<Bound> bounds() const;

  /// Starts the decided jobs: they run from now on.
  void carry_out(const PassResult& result);

  /// Returns the present situation.
  [[nodiscard]] Situation situation() const;
  [[nodiscard]] const Policy& policy() const { return policy_; }
  [[nodiscard]] const Topology& topology() const { return pristine_->topology(); }
  [[nodiscard]] const PlaceTree& tree() const { return pristine_->tree(); }
  [[nodiscard]] const PlanTable& plans() const { return plans_; }
  [[nodiscard]] const FleetCosts& costs() const { return *costs_; }
  [[nodiscard]] const std::deque<JobRequest>& jobs() const { return jobs_; }
  [[nodiscard]] const std::vector<RefusedJob>& refused() const { return refused_; }
  [[nodiscard]] const std::vector<HeldJob>& held() const { return held_; }
  /// Names the jobs that a pass did not consider, because a job before them stops the queue.
  [[nodiscard]] std::vector<std::string> not_reached(const PassResult& result) const;
  /// Returns the energy that a job draws from its start until it is done.
  [[nodiscard]] ExpectedEnergy energy_of_start(const StartJob& start) const;

 private:
  [[nodiscard]] Status load_fleet(const CommandOptions& options, const std::string& path);
  [[nodiscard]] Status load_tenants(const std::string& file);
  [[nodiscard]] Status load_policy(const std::string& name);
  [[nodiscard]] Status load_failures(const std::string& name);
  [[nodiscard]] Status load_jobs(const ScheduleOptions& asked);
  [[nodiscard]] Status add_job(const std::string& file, const ScheduleOptions& asked);

  Facts facts_;
  std::unique_ptr<Fleet> fleet_;
  std::unique_ptr<PristineFleet> pristine_;
  std::optional<TenantTree> tenants_;
  std::optional<TenantUsage> usage_;
  std::optional<FleetCosts> costs_;
  std::optional<PowerTree> power_tree_;
  std::optional<PowerCaps> caps_;
  std::optional<PowerBudget> power_;
  std::optional<PlanSizes> sizes_;
  WorkTable works_;
  ClassTable classes_;
  PlanTable plans_;
  Policy policy_;
  Instant now_;
  std::deque<JobRequest> jobs_;
  std::vector<WaitingJob> waiting_;
  std::vector<RunningJob> running_;
  std::vector<RefusedJob> refused_;
  std::vector<HeldJob> held_;
  double failures_per_node_second_ = 0;
};

}  // namespace orrery
