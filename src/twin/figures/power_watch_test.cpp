#include "twin/figures/power_watch.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "twin/facts_test.hpp"
#include "twin/policy_run.hpp"

namespace orrery {
namespace {

// The job may not stop, so that it runs on while the rack has a limit of 0 W.
TEST(PowerWatch, ALimitOfNothingIsExceededAndNoLoadIsAPartOfIt) {
  const auto cluster = facts_of(
      "apiVersion: orrery/v1\nkind: Fleet\nname: f\nsites:\n- name: s\n  halls:\n"
      "  - name: h\n    pods:\n    - racks:\n"
      "      - cooling: in-row-or-dense-air\n        power_limit: 18 kW\n"
      "        nodes: [{type: dgx-h100, count: 2}]\n");
  Trace trace;
  trace.jobs.push_back({.name = "one", .run = Duration::hours(2), .accelerators = 8});
  trace.jobs[0].kind = JobKind::kFineTune;
  Result<TraceJobs> jobs = trace_jobs(trace, cluster->resolve_context({}), cluster->classes(), {});
  ASSERT_TRUE(jobs) << jobs.error().text();
  jobs->jobs[0].submission.request.preemptible = false;
  PolicyRunInputs in{
      .cluster = *cluster, .jobs = *jobs, .label = "fifo", .policy = *policy_named("fifo")};
  const Result<PolicyRun> kept = run_policy(in);
  ASSERT_TRUE(kept);
  ASSERT_EQ(kept->limits.size(), 1u);
  for (const auto& [minute, cap] : {std::pair(30, std::optional(Watts(0))), {50, std::nullopt}}) {
    in.commands.push_back({.at = Instant() + Duration::minutes(minute),
                           .what = SetPowerCap{kept->limits[0].domain, cap}});
  }
  const Result<PolicyRun> run = run_policy(in);
  ASSERT_TRUE(run);
  ASSERT_EQ(run->limits.size(), 1u);
  EXPECT_TRUE(std::isfinite(run->limits[0].fullest));
  EXPECT_GT(run->limits[0].fullest, 0.5);
  EXPECT_LT(run->limits[0].fullest, 1) << "of the 18 kW that it had else";
  EXPECT_EQ(run->limits[0].above, Duration::minutes(20));
}

}  // namespace
}  // namespace orrery
