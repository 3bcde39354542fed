// Made-up work of several tenants on a fleet of two types, under the policies that hold
// guarantees: after every event everything holds that tests/scenarios/scenario_checks.hpp knows.
#include <gtest/gtest.h>

#include "control/control_facts.hpp"
#include "fleet/accelerator_fleet.hpp"
#include "perf/builtin_calibration.hpp"
#include "perf/repository_facts_test.hpp"
#include "scheduler/tenants_spec.hpp"
#include "tests/scenarios/scenario_checks.hpp"
#include "twin/simulation.hpp"
#include "workload/builtin_models.hpp"
#include "workload/trace_generator.hpp"
#include "workload/trace_mapping.hpp"

namespace orrery {
namespace {

constexpr const char* kTenants =
    "apiVersion: orrery/v1\nkind: Tenants\nname: shares\ntenants:\n"
    "- {name: tenant-1, guarantee: {a100: 8, h100: 8}}\n"
    "- {name: tenant-2, guarantee: {h100: 16}, weight: 2}\n"
    "- {name: tenant-3, guarantee: {a100: 16}, limit: {h100: 8}}\n"
    "- name: default\n";

template <class T>
T value_of(Result<T> result) {
  EXPECT_TRUE(result) << (result ? "" : result.error().text());
  return *std::move(result);
}

Trace work(std::uint64_t seed) {
  Trace trace =
      generate_trace({.accelerators = 64, .utilisation = 1.5, .jobs = 600, .span = {}}, seed);
  map_trace(trace, {}, seed);
  return trace;
}

class Guarantees : public testing::TestWithParam<const char*> {
 protected:
  Guarantees()
      : calibration_(value_of(Calibration::load(builtin_calibration(), {}))),
        models_(value_of(ModelCatalog::load(builtin_models(), ""))) {
    const TenantsSpec tenants =
        value_of(read_tenants_spec(value_of(Document::parse(kTenants, "tenants.yaml"))));
    const AcceleratorFleet fleet =
        value_of(fleet_of_accelerators(builtin_facts(), {{{"a100", 32}, {"h100", 32}}, {}}));
    cluster_ = value_of(
        ControlFacts::make({builtin_facts(), calibration_, models_}, fleet.spec, &tenants));
  }

  Calibration calibration_;
  ModelCatalog models_;
  std::unique_ptr<ControlFacts> cluster_;
};

TEST_P(Guarantees, AreNeverTakenFromATenantThatIsWithinThem) {
  const Topology& fleet = cluster_->topology();
  std::uint64_t preempted = 0;
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    const Trace trace = work(seed);
    TraceJobOptions options;
    options.restart = Duration::minutes(1);
    options.information = Information::kEstimate;
    options.speed = [&](std::string_view model, FleetTypeId type) {
      return type_speed(model_class(model), fleet.accelerator(type),
                        fleet.accelerator(*fleet.find_type("a100")));
    };
    const TraceJobs jobs =
        value_of(trace_jobs(trace, cluster_->resolve_context({}), cluster_->classes(), options));
    const ControlSetup setup = cluster_->setup(value_of(policy_named(GetParam())), Instant());
    ScenarioChecks checks(setup, Instant::max());
    SimulationHooks hooks;
    hooks.events = [&](Instant at, std::span<const Event> events) {
      for (const Event& event : events) checks.take(at, event);
    };
    hooks.tick = [&](Instant, const State&) { checks.instant_ends(); };
    Simulation simulation({setup, {options.rules, {}, setup.plans}, jobs.jobs, hooks, {}});
    simulation.run();
    checks.ends(simulation.state());
    EXPECT_TRUE(checks.broken().empty()) << checks.broken().front();
    EXPECT_EQ(simulation.summary().unfinished, 0U);
    preempted += simulation.summary().preemptions;
  }
  EXPECT_GT(preempted, 0U) << "nobody was ever asked to yield";
}

INSTANTIATE_TEST_SUITE_P(Policies, Guarantees, testing::Values("capacity", "hardware-aware"),
                         [](const auto& each) {
                           return each.index == 0 ? "capacity" : "hardware_aware";
                         });

}  // namespace
}  // namespace orrery
