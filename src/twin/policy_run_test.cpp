#include "twin/policy_run.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "control/log/journal.hpp"
#include "twin/facts_test.hpp"
#include "twin/study/study_figures.hpp"
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

// A site whose limit leaves its nodes 64 kW, over two rows of 22 kW each.
TEST_F(PolicyRunTest, TheCapInItsReportIsWhatAllLimitsTogetherLeaveTheNodes) {
  cluster_ = facts_of(
      "apiVersion: orrery/v1\nkind: Fleet\nname: f\nsites:\n- name: s\n  pue: 1.25\n"
      "  power_cap: 80 kW\n  halls:\n  - name: h\n    rows: {racks: 2, capacity: 22 kW}\n"
      "    pods:\n    - racks:\n      - count: 4\n        cooling: in-row-or-dense-air\n"
      "        nodes: [{type: dgx-h100, count: 2}]\n");
  const Result<PolicyRun> run = run_policy(inputs());
  ASSERT_TRUE(run);
  const FleetSamples& samples = run->report.samples;
  ASSERT_EQ(samples.cap_w.size(), samples.at.size());
  EXPECT_NEAR(samples.cap_w.front(), 44e3, 1);
  // Eight nodes of 2 kW at rest, and the job on one of them.
  const double most = *std::ranges::max_element(samples.power_w);
  EXPECT_GT(most, 16e3 + 3e3);
  EXPECT_LT(most, 16e3 + 9e3);
  const RowMap& power = run->report.power;
  ASSERT_EQ(power.rows.size(), 4u);
  for (const double share : power.shares) EXPECT_TRUE(share > 0 && share <= 1) << share;
}

// Two nodes at rest and one at work stay below 18 kW; the job may neither stop nor go below half
// its clock, so that a cap of 5 kW is exceeded until it is taken back. The row is never full.
TEST_F(PolicyRunTest, SaysForHowLongMoreWasPlannedThanALimit) {
  cluster_ = facts_of(
      "apiVersion: orrery/v1\nkind: Fleet\nname: f\nsites:\n- name: s\n  halls:\n"
      "  - name: h\n    rows: {racks: 1, capacity: 90 kW}\n    pods:\n    - racks:\n"
      "      - cooling: in-row-or-dense-air\n        power_limit: 18 kW\n"
      "        nodes: [{type: dgx-h100, count: 2}]\n");
  jobs_.jobs[0].submission.request.preemptible = false;
  PolicyRunInputs in = inputs();
  const Result<PolicyRun> kept = run_policy(in);
  ASSERT_TRUE(kept);
  ASSERT_EQ(kept->limits.size(), 1u);
  const Topology& topology = cluster_->topology();
  EXPECT_EQ(topology.power_name(kept->limits[0].domain), "s/h/pod/rack");
  EXPECT_GT(kept->limits[0].fullest, 0.5);
  EXPECT_LT(kept->limits[0].fullest, 1);
  EXPECT_EQ(kept->limits[0].above, Duration());
  for (const auto& [minute, cap] :
       {std::pair(30, std::optional(Watts(5000))), {50, std::nullopt}}) {
    in.commands.push_back({.at = Instant() + Duration::minutes(minute),
                           .what = SetPowerCap{kept->limits[0].domain, cap}});
  }
  const Result<PolicyRun> exceeded = run_policy(in);
  ASSERT_TRUE(exceeded);
  EXPECT_GT(exceeded->limits[0].fullest, 1);
  EXPECT_EQ(exceeded->limits[0].above, Duration::minutes(20));
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

class TextSink final : public JournalSink {
 public:
  void write(std::string_view bytes) override { text.append(bytes); }

  std::string text;
};

/// Two jobs on a rack of its own electricity, the second on both an owned and a rented node, under
/// a price that is nothing but hire and energy.
struct OwnedRun {
  double priced = 0;  ///< by the price that chose the placements
  SimulationSummary summary;
};

OwnedRun owned_run(const StepSeries<DollarsPerJoule>* electricity) {
  const auto cluster = facts_of(R"(apiVersion: orrery/v1
kind: Fleet
name: own
sites:
- name: lab
  pue: 1.3
  electricity: $0.20/kWh
  ownership: owned
  halls:
  - pods:
    - racks:
      - cooling: in-row-or-dense-air
        nodes: [{type: dgx-h100, count: 2}, {type: dgx-h100, ownership: rented}]
  fabrics: [{type: ib-ndr, topology: fat-tree}]
)");
  Trace trace;
  trace.jobs.push_back({.name = "one", .run = Duration::hours(2), .accelerators = 8});
  trace.jobs.push_back({.name = "two", .run = Duration::hours(3), .accelerators = 16});
  const auto jobs = trace_jobs(trace, cluster->resolve_context({}), cluster->classes(), {});
  Policy policy = *policy_named("hardware-aware");
  policy.weights = {.hire = 1,
                    .energy = 1,
                    .carbon_tonne = 0,
                    .time = 0,
                    .time_cost_goal = 0,
                    .fragmentation = 0,
                    .lost_work = 0,
                    .data = 0,
                    .failure = 0,
                    .lateness = 0,
                    .headroom = 0};
  TextSink sink;
  PolicyRunInputs in{.cluster = *cluster, .jobs = *jobs, .label = "own", .policy = policy};
  in.electricity = electricity;
  in.events = &sink;
  const Result<PolicyRun> run = run_policy(in);
  EXPECT_TRUE(run) << (run ? "" : run.error().text());
  OwnedRun result{0, run->summary};
  auto events = JournalReader<TimedEvent>::open(sink.text, {"events", nullptr});
  for (auto next = events->next(); next && *next; next = events->next()) {
    const auto* start = std::get_if<JobStarted>(&(*next)->what);
    if (start != nullptr) result.priced += static_cast<double>(start->microdollars) * 1e-6;
  }
  return result;
}

TEST_F(PolicyRunTest, APlacementOnOwnedMachinesIsPricedAsItWillBeBilled) {
  const OwnedRun at_site = owned_run(nullptr);
  EXPECT_EQ(at_site.summary.finished, 2U);
  EXPECT_NEAR(at_site.priced / at_site.summary.cost_usd, 1, 1e-6);
  const auto cheap = doubles_after_an_hour(DollarsPerJoule(10 / 3.6e9));
  const auto dear = doubles_after_an_hour(DollarsPerJoule(5000 / 3.6e9));
  const OwnedRun low = owned_run(&cheap);
  const OwnedRun high = owned_run(&dear);
  EXPECT_NEAR(low.priced / low.summary.cost_usd, 1, 1e-6);
  EXPECT_NEAR(high.priced / high.summary.cost_usd, 1, 1e-6);
  EXPECT_GT(high.summary.cost_usd, low.summary.cost_usd + 50);
  EXPECT_GT(high.summary.fleet.cost_usd, low.summary.fleet.cost_usd + 50);
}

TEST_F(PolicyRunTest, SlowJobsAreNamedWithTheirKind) {
  const Result<PolicyRun> run = run_policy(inputs());
  ASSERT_TRUE(run) << run.error().text();
  ASSERT_EQ(run->report.slowest.size(), 1U);
  EXPECT_EQ(run->report.slowest[0].kind, "FineTune");
  EXPECT_EQ(run->report.slowest[0].reason, "") << "it started at once";
}

// The first job runs twice: it is stopped for the second, which is shorter, and the third waits
// behind.
TEST_F(PolicyRunTest, SlowJobsTellWhatTheyQueuedFor) {
  Trace trace;
  trace.jobs.push_back({.name = "long", .run = Duration::hours(2), .accelerators = 16});
  TraceJob brief{.name = "brief", .run = Duration::hours(1), .accelerators = 16};
  brief.submit = Instant() + Duration::minutes(10);
  trace.jobs.push_back(brief);
  const auto jobs = trace_jobs(trace, cluster_->resolve_context({}), cluster_->classes(), {});
  ASSERT_TRUE(jobs) << jobs.error().text();
  PolicyRunInputs in{
      .cluster = *cluster_, .jobs = *jobs, .label = "srtf", .policy = *policy_named("srtf")};
  const Result<PolicyRun> run = run_policy(in);
  ASSERT_TRUE(run) << run.error().text();
  ASSERT_EQ(run->report.slowest.size(), 2U);
  const std::string& reason = run->report.slowest[0].reason;
  EXPECT_TRUE(reason.starts_with("behind other jobs 1 h")) << reason;
  EXPECT_TRUE(reason.ends_with("; 1 preemption")) << reason;
}

TEST_F(PolicyRunTest, WhatHasNoPriceHasNoCostInStudies) {
  Trace trace;
  trace.jobs.push_back({.name = "old", .run = Duration::hours(2), .accelerators = 8});
  const auto cluster = facts_of(R"(apiVersion: orrery/v1
kind: Fleet
name: old
sites:
- {name: lab, halls: [{pods: [{racks: [{nodes: [{type: p2.16xlarge}]}]}]}]}
)");
  const auto jobs = trace_jobs(trace, cluster->resolve_context({}), cluster->classes(), {});
  ASSERT_TRUE(jobs) << jobs.error().text();
  const Result<PolicyRun> run = run_policy(
      {.cluster = *cluster, .jobs = *jobs, .label = "fifo", .policy = *policy_named("fifo")});
  ASSERT_TRUE(run) << run.error().text();
  const std::vector<StudyFigure> figures = study_figures(StudyRun::kSimulate);
  const std::vector<double> values = figures_of(*run);
  for (std::size_t f = 0; f < figures.size(); ++f) {
    const bool cost = figures[f].name.find("cost") != std::string::npos;
    EXPECT_EQ(std::isnan(values[f]), cost) << figures[f].name;
  }
}

}  // namespace
}  // namespace orrery
