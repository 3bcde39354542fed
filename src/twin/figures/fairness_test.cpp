#include "twin/figures/fairness.hpp"

#include <gtest/gtest.h>

#include "twin/facts_test.hpp"

namespace orrery {
namespace {

// On 8 devices of the tenant alone: the second job has no room beside the first, the third has, and
// the fourth, of 16, runs on 8 for twice as long when all are done.
TEST(Fairness, AloneJobsStartInTheirOrderWhereThereIsRoom) {
  const std::vector<double> completions = completions_alone(
      {std::vector<AloneJob>{{0, 100, 6}, {0, 50, 4}, {10, 20, 2}, {20, 10, 16}}}, 8);
  ASSERT_EQ(completions.size(), 4U);
  EXPECT_DOUBLE_EQ(completions[0], 100);
  EXPECT_DOUBLE_EQ(completions[1], 150);
  EXPECT_DOUBLE_EQ(completions[2], 20);
  EXPECT_DOUBLE_EQ(completions[3], 150);
}

JobOutcome outcome(double submit_s, double end_s, double run_s) {
  JobOutcome job;
  job.submit = Instant() + Duration::from_seconds(submit_s);
  job.start = job.submit;
  job.end = Instant() + Duration::from_seconds(end_s);
  job.devices = 8;
  job.whole_devices = 8;
  job.work_hours = run_s * 8 / 3600;
  return job;
}

TEST(Fairness, StretchIsCompletionOverRunTimeAndShortRunsCountAsTenSeconds) {
  EXPECT_DOUBLE_EQ(stretch_of(outcome(0, 300, 100)), 3);
  EXPECT_DOUBLE_EQ(stretch_of(outcome(0, 20, 1)), 2);
  EXPECT_DOUBLE_EQ(stretch_of(outcome(0, 90, 100)), 1);
  JobOutcome shared = outcome(0, 100, 100);
  shared.devices = 1;
  shared.whole_devices = 0.25;
  shared.work_hours = 100 * 0.25 / 3600;
  EXPECT_DOUBLE_EQ(stretch_of(shared), 1);
}

// Two tenants share 16 devices: each has 8 alone. The first's two jobs would end after 100 s and
// 200 s there, and do so after 100 s both; the second's ends after 300 s instead of 100 s.
TEST(Fairness, RhoComparesWithTheTenantsShareAloneAndJainSaysHowUnlikeTenantsFare) {
  const auto cluster = facts_of(R"(apiVersion: orrery/v1
kind: Fleet
name: two
sites:
- {name: lab, halls: [{pods: [{racks: [{nodes: [{type: dgx-h100, count: 2}]}]}]}]}
)");
  std::vector<JobOutcome> outcomes = {outcome(0, 100, 100), outcome(0, 100, 100),
                                      outcome(0, 300, 100)};
  std::vector<PlayedJob> jobs(3);
  jobs[0].tenant = jobs[1].tenant = "a";
  jobs[2].tenant = "b";
  for (PlayedJob& job : jobs) job.submission.request.tenant = TenantId(1);
  jobs[2].submission.request.kind = JobKind::kTrain;
  outcomes[2].usage.devices.add(FleetTypeId(0), DeviceTime{8} * 100'000'000'000);
  const FairnessFigures figures = fairness_of(
      {outcomes, jobs, cluster->topology(), cluster->tenants(), Duration::seconds(300)});
  ASSERT_EQ(figures.tenants.size(), 2U);
  const GroupFigures& a = figures.tenants[0];
  const GroupFigures& b = figures.tenants[1];
  EXPECT_EQ(a.jobs, 2U);
  EXPECT_DOUBLE_EQ(a.rho, (1 + 0.5) / 2);
  EXPECT_DOUBLE_EQ(b.rho, 3);
  EXPECT_NEAR(b.dominant_share, 800.0 / 4800, 1e-9);
  EXPECT_DOUBLE_EQ(figures.rho, (1 + 0.5 + 3) / 3);
  EXPECT_NEAR(figures.jain, 3.75 * 3.75 / (2 * (0.75 * 0.75 + 9)), 1e-12);
  ASSERT_EQ(figures.kinds.size(), 2U);
  EXPECT_EQ(figures.kinds[0].name, "Batch");
  EXPECT_DOUBLE_EQ(figures.kinds[1].avg_jct_s, 300);
}

}  // namespace
}  // namespace orrery
