// Generated work of several tenants on a fleet of two types, under the policies that hold
// guarantees: after every event all invariants of tests/scenarios/scenario_checks.hpp hold.
#include <gtest/gtest.h>

#include "fleet/spec/accelerator_fleet.hpp"
#include "scheduler/tenants/tenants_spec.hpp"
#include "tests/scenarios/checked_run.hpp"

namespace orrery {
namespace {

constexpr const char* kTenants =
    "apiVersion: orrery/v1\nkind: Tenants\nname: shares\ntenants:\n"
    "- {name: tenant-1, guarantee: {a100: 8, h100: 8}}\n"
    "- {name: tenant-2, guarantee: {h100: 16}, weight: 2}\n"
    "- {name: tenant-3, guarantee: {a100: 16}, limit: {h100: 8}}\n"
    "- name: default\n";

class Guarantees : public testing::TestWithParam<const char*> {};

TEST_P(Guarantees, AreNeverTakenFromATenantThatIsWithinThem) {
  const TenantsSpec tenants =
      value_of(read_tenants_spec(value_of(Document::parse(kTenants, "tenants.yaml"))));
  const AcceleratorFleet made =
      value_of(fleet_of_accelerators(builtin_facts(), {{{"a100", 32}, {"h100", 32}}, {}}));
  MadeUpCluster cluster(made.spec, &tenants);
  const Topology& fleet = cluster.facts().topology();
  std::uint64_t preempted = 0;
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    TraceJobOptions options;
    options.restart = Duration::minutes(1);
    options.information = Information::kEstimate;
    options.speed = [&](std::string_view model, FleetTypeId type) {
      return type_speed(model_class(model), fleet.accelerator(type),
                        fleet.accelerator(*fleet.find_type("a100")));
    };
    const TraceJobs jobs = cluster.jobs(
        {.accelerators = 64, .utilisation = 1.5, .jobs = 600, .span = {}}, seed, options);
    preempted += checked_run(cluster.setup(GetParam()), jobs).preemptions;
  }
  EXPECT_GT(preempted, 0U) << "nobody was ever asked to yield";
}

INSTANTIATE_TEST_SUITE_P(Policies, Guarantees, testing::Values("capacity", "hardware-aware"),
                         [](const auto& each) {
                           return each.index == 0 ? "capacity" : "hardware_aware";
                         });

}  // namespace
}  // namespace orrery
