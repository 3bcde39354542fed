// scheduler/situation.hpp - all inputs of one decision: the fleet, the running and the waiting jobs
// and what each tenant may take, at one instant.
//
// A bundle of views; what it points to is control's state (or a test's) and outlives the pass.
// Invariant: devices of running jobs are taken in the fleet's view; a job either runs or waits.
#pragma once

#include <span>
#include <vector>

#include "fleet/view.hpp"
#include "scheduler/device_history.hpp"
#include "scheduler/power/power_budget.hpp"
#include "scheduler/power/step_series.hpp"
#include "scheduler/price/data_transfer.hpp"
#include "scheduler/price/fleet_costs.hpp"
#include "scheduler/request/gang_terms.hpp"
#include "scheduler/request/placed_gang.hpp"
#include "scheduler/request/request.hpp"
#include "scheduler/tenants/tenant_usage.hpp"

namespace orrery {

/// A job that wants to start. 56 bytes.
struct WaitingJob {
  JobId id;
  const JobRequest* request = nullptr;
  Instant submitted;
  double done = 0;      ///< fraction of its work that is finished
  double attained = 0;  ///< device-seconds it has had
  SiteSet data_at = 0;  ///< sites to which its data have been brought
};

struct RunningJob {
  JobId id;
  const JobRequest* request = nullptr;
  Instant submitted;
  Instant started;  ///< start of this attempt
  Instant since;    ///< when `done` and `attained` were current: start, resize, change of clock
  Instant expected_end;
  Duration checkpoint =
      Duration::max();  ///< interval between checkpoints; max: the job writes none
  double done = 0;
  double attained = 0;
  std::vector<PlacedGang> gangs;
  std::vector<GangTerms> terms;  ///< of each gang
  bool stopping = false;         ///< its devices will be free soon
  SiteSet data_at = 0;           ///< sites to which its data have been brought

  [[nodiscard]] std::uint32_t devices() const {
    std::uint32_t sum = 0;
    for (const PlacedGang& gang : gangs) sum += gang.allocation.devices();
    return sum;
  }
  /// Fraction of its work that is expected to be finished at `now`.
  [[nodiscard]] double done_at(Instant now) const {
    if (now <= since || expected_end <= since || expected_end == Instant::max()) return done;
    const double part = (now - since).count_seconds() / (expected_end - since).count_seconds();
    return done + (1 - done) * (part < 1 ? part : 1);
  }
  [[nodiscard]] double attained_at(Instant now) const {
    return now <= since ? attained : attained + (now - since).count_seconds() * devices();
  }
  /// Work since the last checkpoint, lost if the job is stopped at `now`.
  [[nodiscard]] Duration at_risk(Instant now) const {
    if (now <= started) return {};
    const std::int64_t ran = (now - started).count_ns();
    const std::int64_t every = checkpoint.count_ns();
    return Duration::nanoseconds(every > 0 ? ran % every : 0);
  }
};

/// Counters that go up whenever something that a refusal may depend on improves: a refusal noted at
/// the same counts still holds.
struct Changes {
  std::uint64_t freed = 0;   ///< devices given back, nodes ready again, limits or caps raised
  std::uint64_t plans = 0;   ///< entries of the plan table
  std::uint64_t limits = 0;  ///< power limits changed, up or down
  std::uint64_t links = 0;   ///< links changed, for better or worse: the time of a step changes
};

/// Devices kept for a job that cannot start yet: it starts as soon as they are free, in the order
/// of the reservations, and no other job may be on them then.
struct Reservation {
  JobId job;
  Instant start;
  std::vector<PlacedGang> gangs;
  double lost_device_seconds = 0;  ///< lost by the jobs that leave the devices
};

/// Nodes on which no job may run between two instants.
struct Closure {
  std::vector<NodeDevices> nodes;  ///< including all their devices
  Instant from;
  Instant to;
  /// A resource manager lends the nodes until `from`: a job that may run without end starts there
  /// nevertheless, and goes on elsewhere.
  bool loan = false;
  bool returns = false;  ///< nothing else keeps jobs off the nodes: they take jobs at `to`
  /// Valid: the nodes are ready and for this job alone. They are shown as drained, so that no other
  /// job gets them, and the closure, which begins never, closes nothing else.
  JobId only;
};

/// Running jobs whose changes are counted together.
inline constexpr std::size_t kRunningBlock = 64;

struct Situation {
  Instant now;
  FleetView fleet;
  std::span<const WaitingJob> waiting;
  std::span<const RunningJob> running;
  /// For each block of kRunningBlock running jobs, a counter that goes up when one of them changes,
  /// starts or ends; empty: not counted.
  std::span<const std::uint64_t> running_changes;
  const TenantTree* tenants = nullptr;
  const TenantUsage* usage = nullptr;
  const PowerBudget* power = nullptr;  ///< nullptr: power is not limited
  const PowerCaps* caps = nullptr;     ///< with `power`
  const PlanTable* plans = nullptr;
  const DeviceHistory* history = nullptr;  ///< nullptr: no job has had devices
  const FleetCosts* costs = nullptr;
  const StepSeries<DollarsPerJoule>* electricity =
      nullptr;                                           ///< dollars a joule; none: the sites' own
  const StepSeries<GramsCo2PerJoule>* carbon = nullptr;  ///< grams a joule; none: the sites' own
  /// By node, its failure rate relative to the usual rate; empty: all alike.
  std::span<const float> node_risk;
  double failures_per_node_second = 0;    ///< usual rate
  Duration launch;                        ///< usual time to launch the ranks of a job
  Duration grace;                         ///< time for a last checkpoint of a job that is stopped
  std::span<const Reservation> reserved;  ///< those of earlier passes
  std::span<const Closure> closures;      ///< nodes of closures that have begun are drained
  Changes changes;
};

}  // namespace orrery
