// scenarios/checked_run.hpp - runs generated work on a generated cluster with every check on.
//
// For tests that look at many events rather than at one story. A failed check fails the test that
// calls. Cost: that of the simulation, and of ScenarioChecks for each event.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <span>

#include "control/control_facts.hpp"
#include "perf/builtin_calibration.hpp"
#include "perf/repository_facts_test.hpp"
#include "tests/scenarios/scenario_checks.hpp"
#include "twin/simulation.hpp"
#include "workload/builtin_models.hpp"
#include "workload/trace/trace_generator.hpp"
#include "workload/trace/trace_mapping.hpp"

namespace orrery {

/// A value that must be there.
template <class T>
T value_of(Result<T> result) {
  EXPECT_TRUE(result) << (result ? "" : result.error().text());
  return *std::move(result);
}

/// The built-in facts with a fleet and its tenants. Must outlive what is made from it.
class MadeUpCluster {
 public:
  explicit MadeUpCluster(const FleetSpec& fleet, const TenantsSpec* tenants = nullptr)
      : calibration_(value_of(Calibration::load(builtin_calibration(), {}))),
        models_(value_of(ModelCatalog::load(builtin_models(), {}))),
        facts_(value_of(
            ControlFacts::make({builtin_facts(), calibration_, models_}, fleet, tenants))) {}

  [[nodiscard]] ControlFacts& facts() { return *facts_; }
  [[nodiscard]] ControlSetup setup(const char* policy) {
    return facts_->setup(value_of(policy_named(policy)), Instant());
  }
  /// Draws Philly's mix for a seed.
  [[nodiscard]] TraceJobs jobs(const TraceShape& shape, std::uint64_t seed,
                               const TraceJobOptions& options) {
    Trace trace = generate_trace(shape, seed);
    map_trace(trace, {}, seed);
    return value_of(trace_jobs(trace, facts_->resolve_context({}), facts_->classes(), options));
  }

 private:
  Calibration calibration_;
  ModelCatalog models_;
  std::unique_ptr<ControlFacts> facts_;
};

/// Runs to the end of all jobs. `watch` gets each event after the checks.
inline SimulationSummary checked_run(const ControlSetup& setup, const TraceJobs& jobs,
                                     const std::function<void(const Event&)>& watch = {}) {
  ScenarioChecks checks(setup, Instant::max());
  SimulationHooks hooks;
  hooks.events = [&](Instant at, std::span<const Event> events) {
    for (const Event& event : events) {
      checks.take(at, event);
      if (watch) watch(event);
    }
  };
  hooks.tick = [&](Instant, const State&) { checks.instant_ends(); };
  Simulation simulation({setup, {ReplayRules(), {}, setup.plans}, jobs.jobs, hooks, {}});
  simulation.run();
  checks.ends(simulation.state());
  EXPECT_TRUE(checks.broken().empty()) << checks.broken().front();
  EXPECT_EQ(simulation.summary().unfinished, 0U);
  return simulation.summary();
}

}  // namespace orrery
