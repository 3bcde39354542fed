// twin/trace_jobs.hpp - the jobs of a trace as submitted to control, and their true behaviour.
//
// Made once for a trace, a fleet and a bundle of rules; all compared policies get the same jobs.
// What the scheduler knows of run times is the information class: everything, an estimate with a
// stated error, or nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/setup.hpp"
#include "control/submission.hpp"
#include "scheduler/plans/class_table.hpp"
#include "scheduler/request/resolve.hpp"
#include "twin/information.hpp"
#include "twin/replay_rules.hpp"
#include "twin/world/world_facts.hpp"
#include "workload/trace/trace.hpp"

namespace orrery {

/// What decides how often a trace's job writes a checkpoint.
enum class CheckpointInterval : std::uint8_t {
  kBest,  ///< control, by checkpoint cost and node failures (Daly); else as given
  kGiven,
};

struct TraceJobOptions {
  ReplayRules rules;
  Information information = Information::kOracle;
  double estimate_sigma = 0.5;  ///< of the logarithm of estimate over truth
  std::uint64_t seed = 1;
  /// Measured steps a second of a job on its accelerators of a type. None: the job does not run on
  /// that type if it was measured on another one. Empty: unknown.
  std::function<std::optional<double>(FleetTypeId type, const TraceJob& job)> throughput;
  /// Assumed speed of a type of the fleet on a model over that of `reference`, for jobs that were
  /// not measured; 0: they do not run there. Empty: unknown.
  std::function<double(std::string_view model, FleetTypeId type)> speed;
  /// Plans of the fleet, for the run time of work that is described; may be empty.
  PlanSource plans;
  FleetTypeId reference = FleetTypeId(0);  ///< the type that recorded run times are of
  RestartPolicy restart_policy = RestartPolicy::kAtOnce;
  Duration restart;  ///< restart time of a trace's job from a checkpoint, if the rules have costs
  Duration checkpoint_cost;
  Duration checkpoint_interval = Duration::hours(1);
  CheckpointInterval interval = CheckpointInterval::kBest;
};

/// A row that the fleet could never run.
struct OversizedJob {
  std::string name;
  int line = 0;
  std::string why;
};

struct PlayedJob {
  Submission submission;
  TrueJob truth;
  Instant submit;
  std::uint32_t row = 0;  ///< of the trace
  std::string tenant;     ///< submitted for; the trace's own if no tenants are stated
};

struct TraceJobs {
  std::vector<PlayedJob> jobs;  ///< by time of submission, then row
  std::vector<OversizedJob> oversized;
  std::uint64_t cpu_jobs = 0;     ///< without accelerators: not played
  std::uint64_t fewer_types = 0;  ///< jobs without a rate on some types, which do not run there
  std::string first_of_fewer;     ///< the first of them, and the types
};

/// User errors: a spec inside the trace that does not resolve, steps without throughputs, a job
/// that may run on unlike types with an unknown speed on one of them, an accelerator the fleet does
/// not have.
[[nodiscard]] Result<TraceJobs> trace_jobs(const Trace& trace, const ResolveContext& context,
                                           ClassTable& classes, const TraceJobOptions& options);

}  // namespace orrery
