// control/setup.hpp - the facts that control needs, made by the daemon or the twin: the same for
// the whole life of a log, but for the fleet, which the event FleetSet changes. What else changes
// at run time is State.
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
#include "scheduler/place/place_tree.hpp"
#include "scheduler/plans/plan_table.hpp"
#include "scheduler/policy.hpp"
#include "scheduler/power/power_budget.hpp"
#include "scheduler/power/step_series.hpp"
#include "scheduler/price/fleet_costs.hpp"
#include "scheduler/situation.hpp"
#include "scheduler/tenants/tenant_tree.hpp"

namespace orrery {

/// Returns the result of a plan search; a function of the key alone. Empty: planning is impossible.
using PlanSource = std::function<std::shared_ptr<const PlanEntry>(const PlanKey&)>;

/// Time constants and limits of the core, for virtual and real time.
struct ControlTiming {
  Duration grace = Duration::seconds(30);    ///< for a last checkpoint before a kill
  Duration drain = Duration::minutes(2);     ///< for a service's replica to end its requests
  Duration launch = Duration::seconds(5);    ///< time to launch a job's ranks, as prices count it
  Duration lease = Duration::minutes(10);    ///< lease of jobs that restart after it
  Duration backoff = Duration::seconds(10);  ///< after a program fault, doubling
  Duration backoff_max = Duration::minutes(10);
  Duration remember_requests = Duration::hours(24);
  Duration lemon_window = Duration::hours(24) * 14;
  std::uint32_t lemon_faults = 3;               ///< within the window, and above what chance gives
  Duration claim_window = Duration::hours(24);  ///< in which claims of jobs against nodes add up
  std::uint32_t claims_cleared = 3;             ///< limit for a tenant; more take no node out
};

/// Job numbers `from` to `to` - 1.
struct JobNumbers {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
};

struct ControlSetup;
/// Returns the setup of a cluster whose Fleet file is now `yaml`; what it returned before stays
/// valid. Errors: those of the text, with "fleet.yaml:line:column".
using FleetSource = std::function<Result<const ControlSetup*>(const std::string& yaml)>;

struct ControlSetup {
  const Topology* topology = nullptr;
  const PlaceTree* tree = nullptr;
  const TenantTree* tenants = nullptr;
  const FleetCosts* costs = nullptr;  ///< none: nothing is priced or billed
  const PowerTree* power = nullptr;   ///< none: power is not limited
  /// Values over time; none: the sites' own.
  struct Series {
    const StepSeries<DollarsPerJoule>* electricity = nullptr;
    const StepSeries<GramsCo2PerJoule>* carbon = nullptr;
  };
  Series series;
  PlanSource plans;
  double failures_per_node_second = 0;  ///< usual rate; for checkpoint intervals and prices
  Policy policy;
  ControlTiming timing;
  /// Health of each node before its first report.
  NodeHealth nodes_begin = NodeHealth::kReady;
  Instant begin;
  /// Changes of the fleet while the log grows.
  struct Fleets {
    FleetSource source;  ///< empty: the fleet cannot change
    std::string text;    ///< for `source`; empty: the fleet is that of the log's begin
    /// Why the Tenants file that the log began with does not fit this fleet: the fleet is for a
    /// state with tenants of its own, and `tenants` are the default ones.
    std::optional<Error> tenants_refused;
  };
  Fleets fleets;
  /// Numbers given out by a lost part of the log; they are not given out again.
  std::vector<JobNumbers> lost_jobs;

  /// Whether `job` is in lost_jobs.
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
