// control/setup.hpp - the facts control rests on: made once by the daemon or the twin, the same for
// a log's whole life. What changes while it runs is State.
//
// A bundle of references; everything it names outlives the Core.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fleet/state.hpp"
#include "fleet/topology.hpp"
#include "scheduler/fleet_costs.hpp"
#include "scheduler/place_tree.hpp"
#include "scheduler/plan_table.hpp"
#include "scheduler/policy.hpp"
#include "scheduler/power_budget.hpp"
#include "scheduler/situation.hpp"
#include "scheduler/step_series.hpp"
#include "scheduler/tenant_tree.hpp"

namespace orrery {

/// What a plan search finds; a function of the key alone. Empty: nobody can plan here.
using PlanSource = std::function<std::shared_ptr<const PlanEntry>(const PlanKey&)>;

/// Waits and limits of the core; of virtual or real time alike.
struct ControlTiming {
  Duration grace = Duration::seconds(30);    ///< for a last checkpoint before a kill
  Duration launch = Duration::seconds(5);    ///< of the ranks of a job, as prices count it
  Duration lease = Duration::minutes(10);    ///< of jobs that restart after it
  Duration backoff = Duration::seconds(10);  ///< after a program fault, doubling
  Duration backoff_max = Duration::minutes(10);
  Duration remember_requests = Duration::hours(24);
  Duration lemon_window = Duration::hours(24) * 14;
  std::uint32_t lemon_faults = 3;               ///< within the window, and above what chance gives
  Duration claim_window = Duration::hours(24);  ///< in which claims of jobs against nodes add up
  std::uint32_t claims_cleared = 3;  ///< of a tenant within it; more take no node out of service
};

/// Job numbers from `from` up to the one before `to`.
struct JobNumbers {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
};

struct ControlSetup {
  const Topology* topology = nullptr;
  const PlaceTree* tree = nullptr;
  const TenantTree* tenants = nullptr;
  const FleetCosts* costs = nullptr;  ///< none: nothing is priced or billed
  const PowerTree* power = nullptr;   ///< none: power is not limited
  const StepSeries<DollarsPerJoule>* electricity = nullptr;
  const StepSeries<GramsCo2PerJoule>* carbon = nullptr;
  PlanSource plans;
  double failures_per_node_second = 0;  ///< usual; for checkpoint intervals and prices
  Policy policy;
  ControlTiming timing;
  /// Of every node before anybody has heard of it.
  NodeHealth nodes_begin = NodeHealth::kReady;
  Instant begin;
  /// Numbers that were given out by a part of the log that is lost: they are not given out again.
  std::vector<JobNumbers> lost_jobs;

  /// Whether `job` is one of those.
  [[nodiscard]] bool is_lost(JobId job) const {
    return std::any_of(lost_jobs.begin(), lost_jobs.end(), [job](const JobNumbers& lost) {
      return lost.from <= job.value() && job.value() < lost.to;
    });
  }
  /// The number of the next job after a state with `jobs` of them.
  [[nodiscard]] std::uint64_t next_job(std::uint64_t jobs) const {
    for (const JobNumbers& lost : lost_jobs) jobs = std::max(jobs, lost.to);
    return jobs;
  }
};

}  // namespace orrery
