#include "twin/simulation.hpp"

#include <gtest/gtest.h>

#include "base/document.hpp"
#include "perf/repository_facts_test.hpp"
#include "control/cluster_facts.hpp"
#include "workload/builtin_models.hpp"

namespace orrery {
namespace {

constexpr const char* kTwoNodes = R"(apiVersion: orrery/v1
kind: Fleet
name: two
sites:
- name: lab
  halls:
  - name: hall
    pods:
    - name: pod
      racks:
      - name: rack
        nodes:
        - type: dgx-h100
          count: 2
)";

class SimulationTest : public testing::Test {
 protected:
  SimulationTest() : models_(*ModelCatalog::load(builtin_models(), "")) {
    const Result<FleetSpec> spec = read_fleet_spec(*Document::parse(kTwoNodes, "two.yaml"));
    EXPECT_TRUE(spec) << (spec ? "" : spec.error().text());
    auto cluster =
        ClusterFacts::make({builtin_facts(), builtin_constants(), models_}, *spec, nullptr);
    EXPECT_TRUE(cluster) << (cluster ? "" : cluster.error().text());
    cluster_ = *std::move(cluster);
  }

  void add(std::int64_t submit, std::int64_t run, std::uint32_t devices) {
    TraceJob job;
    job.name = std::to_string(trace_.jobs.size() + 1);
    job.submit = Instant() + Duration::seconds(submit);
    job.run = Duration::seconds(run);
    job.accelerators = devices;
    trace_.jobs.push_back(job);
  }

  std::vector<JobOutcome> play(const std::string& policy, const std::string& rules,
                               Instant until = Instant::max()) {
    TraceJobOptions options;
    options.rules = *replay_rules(rules);
    const Result<Policy> chosen = policy_under(options.rules, policy);
    EXPECT_TRUE(chosen);
    const auto jobs =
        trace_jobs(trace_, cluster_->resolve_context({}), cluster_->classes(), options);
    EXPECT_TRUE(jobs) << (jobs ? "" : jobs.error().text());
    const ControlSetup setup = cluster_->setup(*chosen, Instant());
    Simulation simulation({setup, {options.rules, {}, setup.plans}, jobs->jobs, {}});
    simulation.run(until);
    ended_ = simulation.now();
    summary_ = simulation.summary();
    return simulation.outcomes();
  }

  ModelCatalog models_;
  std::unique_ptr<ClusterFacts> cluster_;
  Trace trace_;
  SimulationSummary summary_;
  Instant ended_;
};

std::int64_t seconds(Instant at) { return at.ns() / 1'000'000'000; }

TEST_F(SimulationTest, JobsRunInTheOrderOfSubmissionAndTheHeadOfTheQueueBlocks) {
  add(0, 100, 8);
  add(0, 50, 4);
  add(1, 10, 16);
  add(2, 10, 4);
  const auto jobs = play("fifo", "helios");
  EXPECT_EQ(seconds(jobs[0].end), 100);
  EXPECT_EQ(seconds(jobs[1].end), 50);
  EXPECT_EQ(seconds(jobs[2].start), 100);
  EXPECT_EQ(seconds(jobs[2].end), 110);
  EXPECT_EQ(seconds(jobs[3].start), 110);
  EXPECT_EQ(summary_.finished, 4U);
}

TEST_F(SimulationTest, WhatRunsAtTheEndCountsUntilThen) {
  add(0, 1000, 16);
  const Instant until = Instant() + Duration::seconds(600);
  EXPECT_EQ(play("fifo", "helios", until)[0].phase, JobPhase::kRunning);
  EXPECT_EQ(ended_, until);
  EXPECT_DOUBLE_EQ(summary_.utilization, 1);
}

// Of a mapped trace: what runs an hour on the type it was recorded on is done sooner on a faster
// one, is asked about that first, and never on CPUs; on twice its accelerators it takes half as
// long.
TEST_F(SimulationTest, RunTimesAreThoseOnTheRecordedTypeAndNumber) {
  const Result<FleetSpec> spec = read_fleet_spec(*Document::parse(
      std::string(kTwoNodes) + "        - {type: dgx-a100-80g, count: 1}\n", "two.yaml"));
  ASSERT_TRUE(spec) << spec.error().text();
  cluster_ = *ClusterFacts::make({builtin_facts(), builtin_constants(), models_}, *spec, nullptr);
  const Topology& fleet = cluster_->topology();
  add(0, 3600, 8);
  trace_.jobs[0].model = "gpt2";
  add(0, 3600, 4);
  trace_.jobs[1].model = "gpt2";
  trace_.jobs[1].accelerators_min = 2;
  trace_.jobs[1].accelerators_max = 8;
  TraceJobOptions options;
  options.speed = [&](std::string_view, FleetTypeId type) {
    return type == *fleet.find_type("h100") ? 2.0 : 1.0;
  };
  const auto jobs = trace_jobs(trace_, cluster_->resolve_context({}), cluster_->classes(), options);
  ASSERT_TRUE(jobs) << jobs.error().text();
  const RoleRequest& rigid = jobs->jobs[0].submission.request.roles[0];
  ASSERT_EQ(rigid.options.size(), 2U);
  EXPECT_EQ(rigid.options[0].gang.type, *fleet.find_type("h100"));
  EXPECT_DOUBLE_EQ(rigid.options[0].speed / rigid.options[1].speed, 2);
  EXPECT_EQ(jobs->jobs[0].truth.work, Duration::hours(1));
  EXPECT_EQ(jobs->jobs[1].truth.work, Duration::minutes(30));
  const ControlSetup setup = cluster_->setup(*policy_named("capacity"), Instant());
  Simulation simulation({setup, {options.rules, {}, setup.plans}, jobs->jobs, {}});
  simulation.run();
  const std::vector<JobOutcome> played = simulation.outcomes();
  EXPECT_NEAR((played[0].end - played[0].start).count_seconds(), 1800, 10);
  EXPECT_NEAR((played[1].end - played[1].start).count_seconds(), 900, 10);
}

TEST_F(SimulationTest, ShortestRemainingTimeTakesDevicesFromLongerJobs) {
  add(0, 100, 16);
  add(10, 20, 8);
  const auto jobs = play("srtf", "muri");
  EXPECT_EQ(seconds(jobs[1].start), 10);
  EXPECT_EQ(seconds(jobs[1].end), 30);
  EXPECT_EQ(seconds(jobs[0].end), 120);
  EXPECT_EQ(summary_.preemptions, 1U);
}

}  // namespace
}  // namespace orrery
