// twin/policy_run.hpp - one policy on one cluster and trace: run, sampled, summed up.
//
// What `simulate` and the studies share. A pure function of its inputs: how long it took is for
// the caller's clock.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "control/control_facts.hpp"
#include "control/journal.hpp"
#include "hardware/failure_spec.hpp"
#include "twin/power_watch.hpp"
#include "twin/report_data.hpp"
#include "twin/simulation.hpp"

namespace orrery {

struct PolicyRunInputs {
  ControlFacts& cluster;
  const TraceJobs& jobs;
  std::string label;  ///< of the policy, as it was asked for
  std::string setup;  ///< digest of what was asked, for the heads of the journals; empty: unsaid
  Policy policy;
  ReplayRules rules;
  Information information = Information::kOracle;
  WorldTiming timing;
  std::optional<FailureSpec> failures;
  std::uint64_t seed = 1;
  Instant begin;
  Instant until = Instant::max();
  std::optional<MeasureWindow> measure;  ///< none: all jobs and all time
  std::uint32_t spares = 0;              ///< nodes kept back, spread over the fleet
  const StepSeries<DollarsPerJoule>* electricity = nullptr;
  const StepSeries<GramsCo2PerJoule>* carbon = nullptr;
  std::vector<Instant> arrivals;  ///< by node (twin/arrivals.hpp); empty: all are there
  std::vector<Input> commands;    ///< of an operator, by time
  std::vector<Fault> faults;      ///< that come anyhow, by time
  JournalSink* events = nullptr;  ///< records the history
  JournalSink* inputs = nullptr;
  /// Called about every so many inputs with the virtual time; none: nobody looks.
  std::function<void(Instant, const Simulation&)> progress;
  JobId explain;  ///< whose waiting is told in PolicyRun::story
};

struct PolicyRun {
  PolicyReport report;
  SimulationSummary summary;
  std::vector<JobOutcome> outcomes;
  Instant end;  ///< when nothing more happened, or the run was cut
  std::uint64_t history = 0;
  std::string story;
  std::vector<WatchedLimit> limits;   ///< of power, that the nodes below could exceed
  std::vector<FleetTypeId> unpriced;  ///< types of the fleet without a published price
};

/// Whether a job ran on nothing but types with a price, so that its cost is known.
[[nodiscard]] bool is_priced(const JobUsage& usage, std::span<const FleetTypeId> unpriced);

/// What the core of such a run rests on.
[[nodiscard]] ControlSetup control_setup(const PolicyRunInputs& inputs);

/// Errors: a failure model that cannot be made.
[[nodiscard]] Result<PolicyRun> run_policy(const PolicyRunInputs& inputs);

}  // namespace orrery
