// verbs/schedule/schedule_request.hpp - a fleet, its tenants and a queue of jobs, as files: the
// input of the verb `schedule`.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/admission.hpp"
#include "verbs/schedule/job_queue.hpp"

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

/// The part of a fleet that jobs use, which grows as they start.
struct FleetUse {
  FleetUse(const ScheduledFleet& of, const TenantTree& tenants)
      : fleet(of.topology()), usage(tenants), caps(of.power()), power(of.power()) {}

  Fleet fleet;
  TenantUsage usage;
  PowerCaps caps;
  PowerBudget power;
  std::vector<RunningJob> running;
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
  [[nodiscard]] const Topology& topology() const { return fleet_.topology(); }
  [[nodiscard]] const PlaceTree& tree() const { return fleet_.pristine().tree(); }
  [[nodiscard]] const PlanTable& plans() const { return plans_; }
  [[nodiscard]] const FleetCosts& costs() const { return fleet_.costs(); }
  [[nodiscard]] const std::deque<JobRequest>& jobs() const { return queue_.jobs(); }
  [[nodiscard]] const std::vector<RefusedJob>& refused() const { return queue_.refused(); }
  [[nodiscard]] const std::vector<HeldJob>& held() const { return queue_.held(); }
  /// Names the jobs that a pass did not consider, because a job before them stops the queue.
  [[nodiscard]] std::vector<std::string> not_reached(const PassResult& result) const;
  /// Returns the energy that a job draws from its start until it is done.
  [[nodiscard]] ExpectedEnergy energy_of_start(const StartJob& start) const;

 private:
  [[nodiscard]] Status load_tenants(const std::string& file);
  [[nodiscard]] Status load_policy(const std::string& name);
  [[nodiscard]] Status load_failures(const std::string& name);

  ScheduledFleet fleet_;
  std::optional<TenantTree> tenants_;
  std::optional<FleetUse> use_;
  JobQueue queue_;
  Policy policy_;
  PlanTable plans_;
  Instant now_;
  double failures_per_node_second_ = 0;
};

}  // namespace orrery
