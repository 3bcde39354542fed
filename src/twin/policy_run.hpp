// twin/policy_run.hpp - runs one policy on one cluster and trace, samples it and summarizes it.
//
// Shared by `simulate` and the studies. A pure function of its inputs: the caller measures how long
// it took.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "control/control_facts.hpp"
#include "control/log/journal.hpp"
#include "hardware/failure_spec.hpp"
#include "twin/figures/power_watch.hpp"
#include "twin/figures/report_data.hpp"
#include "twin/simulation.hpp"

namespace orrery {

struct PolicyRunInputs {
  ControlFacts& cluster;
  const TraceJobs& jobs;
  std::string label;  ///< of the policy, as it was asked for
  std::string setup;  ///< digest of the options, for the heads of the journals; empty: not recorded
  Policy policy;
  ReplayRules rules;
  Information information = Information::kOracle;
  WorldTiming timing;
  std::optional<FailureSpec> failures;
  std::uint64_t seed = 1;
  Instant begin;
  Instant until = Instant::max();
  std::optional<MeasureWindow> measure;  ///< none: figures cover all jobs and all time
  std::uint32_t spares = 0;              ///< nodes kept back, spread over the fleet
  const StepSeries<DollarsPerJoule>* electricity = nullptr;
  const StepSeries<GramsCo2PerJoule>* carbon = nullptr;
  std::vector<Instant> arrivals;  ///< by node (twin/world/arrivals.hpp); empty: all are there
  std::vector<Input> commands;    ///< of an operator, by time
  std::vector<Fault> faults;      ///< faults that happen in any case, by time
  JournalSink* events = nullptr;  ///< records the history
  JournalSink* inputs = nullptr;
  /// Called with the virtual time once every so many inputs; may be empty.
  std::function<void(Instant, const Simulation&)> progress;
  JobId explain;  ///< job whose waiting PolicyRun::story explains
};

struct PolicyRun {
  PolicyReport report;
  SimulationSummary summary;
  std::vector<JobOutcome> outcomes;
  Instant end;  ///< when nothing more happened, or the run was cut
  std::uint64_t history = 0;
  std::string story;
  std::vector<WatchedLimit> limits;   ///< power limits that the nodes below could exceed
  std::vector<FleetTypeId> unpriced;  ///< types of the fleet without a published price
};

/// Whether the job ran only on types with a price, so that its cost is known.
[[nodiscard]] bool is_priced(const JobUsage& usage, std::span<const FleetTypeId> unpriced);

/// The control setup of such a run.
[[nodiscard]] ControlSetup control_setup(const PolicyRunInputs& inputs);

/// Errors: a failure model that cannot be made.
[[nodiscard]] Result<PolicyRun> run_policy(const PolicyRunInputs& inputs);

}  // namespace orrery
