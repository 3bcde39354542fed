// Generated work on a fleet that draws far more in training than its site and its rows carry: after
// every event all invariants of tests/scenarios/scenario_checks.hpp hold, above all the limits of
// power.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <optional>
#include <set>
#include <vector>

#include "fleet/spec/spec.hpp"
#include "tests/scenarios/checked_run.hpp"

namespace orrery {
namespace {

struct Limits {
  const char* name;
  const char* site;
  const char* row;
};

/// Four racks of two DGX H100 in two rows: 78 kW at the meter in training, 20 kW at rest.
FleetSpec capped(const Limits& limits) {
  const std::string text = fmt::format(
      "apiVersion: orrery/v1\nkind: Fleet\nname: f\nsites:\n- name: s\n  pue: 1.25\n"
      "  power_cap: {}\n  halls:\n  - name: h\n    rows: {{racks: 2, capacity: {}}}\n"
      "    pods:\n    - racks:\n      - count: 4\n        cooling: in-row-or-dense-air\n"
      "        nodes: [{{type: dgx-h100, count: 2}}]\n",
      limits.site, limits.row);
  return value_of(read_fleet_spec(value_of(Document::parse(text, "fleet.yaml"))));
}

constexpr Limits kLowSite{"site", "50 kW", "40 kW"};

TraceJobs work_for(MadeUpCluster& cluster, Information information) {
  TraceJobOptions options;
  options.restart = Duration::minutes(1);
  options.information = information;
  options.speed = [](std::string_view, FleetTypeId) { return 1.0; };
  return cluster.jobs({.accelerators = 64, .utilisation = 1.2, .jobs = 80, .span = {}}, 1, options);
}

class PowerCapsHold : public testing::TestWithParam<Limits> {};

TEST_P(PowerCapsHold, AtEachInstantWhoeverStartsAndEnds) {
  MadeUpCluster cluster(capped(GetParam()));
  const ControlSetup setup = cluster.setup("hardware-aware");
  ASSERT_NE(setup.power, nullptr);
  std::uint64_t clocks = 0;
  checked_run(setup, work_for(cluster, Information::kEstimate), [&](const Event& event) {
    clocks += std::holds_alternative<ClockSet>(event) ? 1 : 0;
  });
  EXPECT_GT(clocks, 0U) << "no clock ever changed";
}

INSTANTIATE_TEST_SUITE_P(Limits, PowerCapsHold,
                         testing::Values(kLowSite, Limits{"rows", "80 kW", "22 kW"},
                                         Limits{"both", "60 kW", "26 kW"}),
                         [](const auto& each) { return each.param.name; });

// Clocks rise again in full passes, which only some policies have.
TEST(PowerShared, ARunningJobKeepsItsClockUnderAPolicyWithoutFullPasses) {
  MadeUpCluster cluster(capped(kLowSite));
  const TraceJobs jobs = work_for(cluster, Information::kOracle);
  for (const char* policy : {"fifo", "hardware-aware"}) {
    std::uint64_t clocks = 0;
    checked_run(cluster.setup(policy), jobs, [&](const Event& event) {
      clocks += std::holds_alternative<ClockSet>(event) ? 1 : 0;
    });
    EXPECT_EQ(clocks > 0, policy == std::string("hardware-aware")) << policy;
  }
}

// Jobs get time limits a little above their expected run times at full clocks. A job that can keep
// its limit when it starts keeps it, however many others share the power.
TEST(PowerShared, ASlowedJobKeepsItsTimeLimit) {
  MadeUpCluster cluster(capped({"none", "1 MW", "1 MW"}));
  TraceJobs jobs = work_for(cluster, Information::kOracle);
  std::vector<std::optional<Duration>> expected(jobs.jobs.size());
  checked_run(cluster.setup("hardware-aware"), jobs, [&](const Event& event) {
    const auto* start = std::get_if<JobStarted>(&event);
    if (start != nullptr && start->attempt == 1) expected[start->job.value()] = start->expected;
  });
  for (std::size_t i = 0; i < expected.size(); i += 2) {
    if (!expected[i]) continue;
    jobs.jobs[i].submission.request.time_limit =
        Duration::from_seconds(expected[i]->count_seconds() * 1.02 + 150);
  }
  MadeUpCluster low(capped({"low", "40 kW", "35 kW"}));
  std::set<JobId> in_time;  // at their last start
  std::uint64_t clocks = 0;
  checked_run(low.setup("hardware-aware"), jobs, [&](const Event& event) {
    if (const auto* start = std::get_if<JobStarted>(&event)) {
      const auto& limit = jobs.jobs[start->job.value()].submission.request.time_limit;
      in_time.erase(start->job);
      if (limit && *start->expected + Duration::minutes(2) < *limit) in_time.insert(start->job);
    } else if (const auto* set = std::get_if<ClockSet>(&event)) {
      clocks += in_time.contains(set->job) ? 1 : 0;
    } else if (const auto* stop = std::get_if<JobStopping>(&event)) {
      EXPECT_FALSE(stop->reason == StopReason::kTimeLimit && in_time.contains(stop->job))
          << stop->job.value() << " was slowed past its time limit";
    }
  });
  EXPECT_GT(clocks, 0U);
}

}  // namespace
}  // namespace orrery
