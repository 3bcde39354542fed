// Made-up work on a fleet that draws far more in training than its site and its rows carry: after
// every event everything holds that tests/scenarios/scenario_checks.hpp knows, the limits of power
// above all.
#include <gtest/gtest.h>

#include "control/control_facts.hpp"
#include "fleet/spec.hpp"
#include "perf/builtin_calibration.hpp"
#include "perf/repository_facts_test.hpp"
#include "tests/scenarios/scenario_checks.hpp"
#include "twin/simulation.hpp"
#include "workload/builtin_models.hpp"
#include "workload/trace_generator.hpp"
#include "workload/trace_mapping.hpp"

namespace orrery {
namespace {

template <class T>
T value_of(Result<T> result) {
  EXPECT_TRUE(result) << (result ? "" : result.error().text());
  return *std::move(result);
}

/// Four racks of two DGX H100 in two rows: 78 kW at the meter in training, 20 kW at rest.
std::string capped(const std::string& site, const std::string& row) {
  return "apiVersion: orrery/v1\nkind: Fleet\nname: f\nsites:\n- name: s\n  pue: 1.25\n"
         "  power_cap: " +
         site + "\n  halls:\n  - name: h\n    rows: {racks: 2, capacity: " + row +
         "}\n    pods:\n    - racks:\n      - count: 4\n        cooling: in-row-or-dense-air\n"
         "        nodes: [{type: dgx-h100, count: 2}]\n";
}

struct Limits {
  const char* name;
  const char* site;
  const char* row;
};

class PowerCapsHold : public testing::TestWithParam<Limits> {
 protected:
  Calibration calibration_ = value_of(Calibration::load(builtin_calibration(), {}));
  ModelCatalog models_ = value_of(ModelCatalog::load(builtin_models(), ""));
};

TEST_P(PowerCapsHold, AtEachInstantWhoeverStartsAndEnds) {
  const std::string text = capped(GetParam().site, GetParam().row);
  const FleetSpec spec = value_of(read_fleet_spec(value_of(Document::parse(text, "fleet.yaml"))));
  const std::unique_ptr<ControlFacts> cluster =
      value_of(ControlFacts::make({builtin_facts(), calibration_, models_}, spec, nullptr));
  std::uint64_t clocks = 0;
  Trace trace = generate_trace({.accelerators = 64, .utilisation = 1.2, .jobs = 80, .span = {}}, 1);
  map_trace(trace, {}, 1);
  TraceJobOptions options;
  options.restart = Duration::minutes(1);
  options.information = Information::kEstimate;
  options.speed = [](std::string_view, FleetTypeId) { return 1.0; };
  const TraceJobs jobs =
      value_of(trace_jobs(trace, cluster->resolve_context({}), cluster->classes(), options));
  const ControlSetup setup = cluster->setup(value_of(policy_named("hardware-aware")), Instant());
  ASSERT_NE(setup.power, nullptr);
  ScenarioChecks checks(setup, Instant::max());
  SimulationHooks hooks;
  hooks.events = [&](Instant at, std::span<const Event> events) {
    for (const Event& event : events) {
      checks.take(at, event);
      clocks += std::holds_alternative<ClockSet>(event) ? 1 : 0;
    }
  };
  hooks.tick = [&](Instant, const State&) { checks.instant_ends(); };
  Simulation simulation({setup, {options.rules, {}, setup.plans}, jobs.jobs, hooks, {}});
  simulation.run();
  checks.ends(simulation.state());
  EXPECT_TRUE(checks.broken().empty()) << checks.broken().front();
  EXPECT_EQ(simulation.summary().unfinished, 0U);
  EXPECT_GT(clocks, 0U) << "no clock ever changed";
}

// Clocks rise again in full passes, which only some policies have.
TEST(PowerShared, NobodyThatRunsIsSlowedUnderAPolicyWithoutFullPasses) {
  const Calibration calibration = value_of(Calibration::load(builtin_calibration(), {}));
  const ModelCatalog models = value_of(ModelCatalog::load(builtin_models(), ""));
  const std::string text = capped("50 kW", "40 kW");
  const FleetSpec spec = value_of(read_fleet_spec(value_of(Document::parse(text, "fleet.yaml"))));
  const std::unique_ptr<ControlFacts> cluster =
      value_of(ControlFacts::make({builtin_facts(), calibration, models}, spec, nullptr));
  Trace trace = generate_trace({.accelerators = 64, .utilisation = 1.2, .jobs = 80, .span = {}}, 1);
  map_trace(trace, {}, 1);
  TraceJobOptions options;
  options.speed = [](std::string_view, FleetTypeId) { return 1.0; };
  const TraceJobs jobs =
      value_of(trace_jobs(trace, cluster->resolve_context({}), cluster->classes(), options));
  for (const char* policy : {"fifo", "hardware-aware"}) {
    const ControlSetup setup = cluster->setup(value_of(policy_named(policy)), Instant());
    std::uint64_t clocks = 0;
    SimulationHooks hooks;
    hooks.events = [&](Instant, std::span<const Event> events) {
      for (const Event& event : events) clocks += std::holds_alternative<ClockSet>(event) ? 1 : 0;
    };
    Simulation simulation({setup, {options.rules, {}, setup.plans}, jobs.jobs, hooks, {}});
    simulation.run();
    EXPECT_EQ(clocks > 0, policy == std::string("hardware-aware")) << policy;
  }
}

INSTANTIATE_TEST_SUITE_P(Limits, PowerCapsHold,
                         testing::Values(Limits{"site", "50 kW", "40 kW"},
                                         Limits{"rows", "80 kW", "22 kW"},
                                         Limits{"both", "60 kW", "26 kW"}),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace orrery
