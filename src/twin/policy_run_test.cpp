#include "twin/policy_run.hpp"

#include <gtest/gtest.h>

#include "twin/facts_test.hpp"
#include "workload/job_spec.hpp"

namespace orrery {
namespace {

constexpr const char* kOneRack = R"(apiVersion: orrery/v1
kind: Fleet
name: one
sites:
- name: lab
  halls:
  - name: hall
    pods:
    - name: pod
      racks:
      - name: rack
        nodes: [{type: dgx-h100, count: 2}]
)";

class PolicyRunTest : public testing::Test {
 protected:
  PolicyRunTest() : cluster_(facts_of(kOneRack)) {
    Trace trace;
    TraceJob job{.name = "one", .run = Duration::hours(2), .accelerators = 8};
    job.kind = JobKind::kFineTune;
    trace.jobs.push_back(job);
    const auto jobs = trace_jobs(trace, cluster_->resolve_context({}), cluster_->classes(), {});
    EXPECT_TRUE(jobs) << (jobs ? "" : jobs.error().text());
    jobs_ = *jobs;
  }

  PolicyRunInputs inputs() {
    return {.cluster = *cluster_, .jobs = jobs_, .label = "fifo", .policy = *policy_named("fifo")};
  }

  std::unique_ptr<ControlFacts> cluster_;
  TraceJobs jobs_;
};

template <class Value>
StepSeries<Value> doubles_after_an_hour(Value first) {
  return *StepSeries<Value>::make(
      {{Instant(), first}, {Instant() + Duration::hours(1), first * 2.0}});
}

TEST_F(PolicyRunTest, PricesAndCarbonOfTheSeriesAreInItsReport) {
  const auto price = doubles_after_an_hour(DollarsPerJoule(100 / 3.6e9));
  const auto carbon = doubles_after_an_hour(GramsCo2PerJoule(250 / 3.6e6));
  PolicyRunInputs in = inputs();
  in.electricity = &price;
  in.carbon = &carbon;
  const Result<PolicyRun> run = run_policy(in);
  ASSERT_TRUE(run) << run.error().text();
  const FleetSamples& samples = run->report.samples;
  ASSERT_EQ(samples.usd_per_mwh.size(), samples.at.size());
  ASSERT_EQ(samples.g_per_kwh.size(), samples.at.size());
  EXPECT_NEAR(samples.usd_per_mwh.front(), 100, 1e-9);
  EXPECT_NEAR(samples.usd_per_mwh.back(), 200, 1e-9);
  EXPECT_NEAR(samples.g_per_kwh.front(), 250, 1e-9);
  EXPECT_NEAR(samples.g_per_kwh.back(), 500, 1e-9);
  const Result<PolicyRun> none = run_policy(inputs());
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->report.samples.usd_per_mwh.empty());
  EXPECT_TRUE(none->report.samples.g_per_kwh.empty());
}

TEST_F(PolicyRunTest, SlowJobsAreNamedWithTheirKind) {
  const Result<PolicyRun> run = run_policy(inputs());
  ASSERT_TRUE(run) << run.error().text();
  ASSERT_EQ(run->report.slowest.size(), 1U);
  EXPECT_EQ(run->report.slowest[0].kind, "FineTune");
}

}  // namespace
}  // namespace orrery
