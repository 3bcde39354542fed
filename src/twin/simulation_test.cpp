#include "twin/simulation.hpp"

#include <gtest/gtest.h>

#include "control/state/snapshot.hpp"
#include "twin/facts_test.hpp"

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

  std::unique_ptr<ControlFacts> cluster_ = facts_of(kTwoNodes);
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

// In a mapped trace, a job that runs an hour on the type it was recorded on finishes sooner on a
// faster one, asks for that first, and never runs on CPUs; on twice its accelerators it takes half
// as long.
TEST_F(SimulationTest, RunTimesAreThoseOnTheRecordedTypeAndNumber) {
  cluster_ = facts_of(std::string(kTwoNodes) + "        - {type: dgx-a100-80g, count: 1}\n");
  const Topology& fleet = cluster_->topology();
  add(0, 3600, 8);
  trace_.jobs[0].model = "gpt2";
  add(0, 3600, 4);
  trace_.jobs[1].model = "gpt2";
  trace_.jobs[1].accelerators_min = 2;
  trace_.jobs[1].accelerators_max = 8;
  TraceJobOptions options;
  options.reference = *fleet.find_type("a100");
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

// A job that starts at once and is stopped for others has queued, though it never waited for a
// start.
TEST_F(SimulationTest, QueueingTimeCountsWhatAJobWaitsBetweenAStopAndItsRestart) {
  add(0, 100, 16);
  add(10, 20, 8);
  const auto jobs = play("srtf", "muri");
  EXPECT_EQ(seconds(jobs[0].start), 0);
  EXPECT_EQ(jobs[0].watched.queued, Duration::seconds(20));
  EXPECT_EQ(jobs[1].watched.queued, Duration());
  EXPECT_DOUBLE_EQ(summary_.avg_wait_s, 0);
  EXPECT_DOUBLE_EQ(summary_.avg_queueing_s, 10);
  EXPECT_DOUBLE_EQ(summary_.p50_queueing_s, 20) << "by Muri's index";
  EXPECT_DOUBLE_EQ(summary_.p99_queueing_s, 20);
}

// The third job waits for the first by its dependency, and then for devices.
TEST_F(SimulationTest, QueueingTimeLeavesOutWhatAJobWaitsForAnother) {
  add(0, 100, 8);
  add(0, 150, 8);
  add(0, 10, 16);
  auto jobs = *trace_jobs(trace_, cluster_->resolve_context({}), cluster_->classes(), {});
  jobs.jobs[2].submission.after = {JobId(0)};
  const ControlSetup setup = cluster_->setup(*policy_named("fifo"), Instant());
  World::Facts world{{}, {}, setup.plans};
  world.timing.launch = world.timing.scheduler_latency = Duration();
  Simulation simulation({setup, std::move(world), jobs.jobs, {}});
  simulation.run();
  const JobOutcome third = simulation.outcomes()[2];
  EXPECT_NEAR(third.usage.waited.count_seconds(), 150, 5);
  EXPECT_NEAR(third.watched.queued.count_seconds(), 50, 5);
}

// Two hours of work on half of the fleet; only the second hour is measured.
TEST_F(SimulationTest, AWindowMeasuresTheJobsSubmittedInItAndTheDevicesInThatTime) {
  add(0, 3600, 16);
  add(4000, 7200, 8);
  add(4000, 100, 8);
  TraceJobOptions options;
  options.rules = *replay_rules("helios");
  const auto jobs =
      *trace_jobs(trace_, cluster_->resolve_context({}), cluster_->classes(), options);
  const ControlSetup setup = cluster_->setup(*policy_under(options.rules, "fifo"), Instant());
  const auto play = [&](std::optional<MeasureWindow> measure) {
    Simulation simulation({setup, {options.rules, {}, setup.plans}, jobs.jobs, {}, {}, measure});
    simulation.run();
    return simulation.summary();
  };
  const auto at = [](std::int64_t second) { return Instant() + Duration::seconds(second); };
  const SimulationSummary all = play(std::nullopt);
  EXPECT_EQ(all.measured, 3U);
  EXPECT_DOUBLE_EQ(all.avg_jct_s, (3600 + 7200 + 100) / 3.0);
  const SimulationSummary later = play(MeasureWindow{at(4000), at(6000)});
  EXPECT_EQ(later.jobs, 3U);
  EXPECT_EQ(later.measured, 2U);
  EXPECT_EQ(later.finished, 2U);
  EXPECT_DOUBLE_EQ(later.avg_jct_s, (7200 + 100) / 2.0);
  EXPECT_NEAR(later.utilization, (2000.0 + 100) / 2000 / 2, 1e-9);
  EXPECT_DOUBLE_EQ(later.makespan_s, all.makespan_s);
  const SimulationSummary first = play(MeasureWindow{at(0), at(1800)});
  EXPECT_EQ(first.measured, 1U);
  EXPECT_DOUBLE_EQ(first.utilization, 1);
  const SimulationSummary open = play(MeasureWindow{at(4000), Instant::max()});
  EXPECT_NEAR(open.utilization, (7200.0 + 100) / 7200 / 2, 1e-9);
}

// When devices of a silent node are reused, or its job restarts elsewhere, depends on the restart
// policy of the job: it must be certain that nothing of it still runs.
class SilentNodeTest : public SimulationTest {
 protected:
  struct Played {
    std::int64_t started = 0;  ///< second attempt, in seconds; 0: never
    JobOutcome job;
    SimulationSummary summary;
  };

  /// One job; its first node loses its host after 100 s, or its whole rack its power.
  Played play_loss(RestartPolicy policy, FaultScope scope, Duration repair) {
    const auto jobs = trace_jobs(trace_, cluster_->resolve_context({}), cluster_->classes(), {});
    EXPECT_TRUE(jobs);
    std::vector<PlayedJob> one = jobs->jobs;
    one[0].submission.restart = policy;
    const ControlSetup setup = cluster_->setup(*policy_named("fifo"), Instant());
    World::Facts world{{}, {}, setup.plans};
    const bool rack = std::holds_alternative<DomainId>(scope);
    world.scripted = {{.at = Instant() + Duration::seconds(100),
                       .kind = rack ? FaultKind::kPdu : FaultKind::kHost,
                       .scope = scope,
                       .repair = repair}};
    Played played;
    SimulationHooks hooks;
    hooks.events = [&](Instant at, std::span<const Event> events) {
      for (const Event& event : events) {
        const auto* start = std::get_if<JobStarted>(&event);
        if (start != nullptr && start->attempt == 2) played.started = seconds(at);
      }
    };
    Simulation simulation({setup, std::move(world), one, std::move(hooks)});
    simulation.run();
    played.job = simulation.outcomes()[0];
    played.summary = simulation.summary();
    return played;
  }
};

TEST_F(SilentNodeTest, ItsJobStartsElsewhereAtOnceAfterItsLeaseWhenItIsSafeOrNever) {
  add(0, 1000, 8);
  const auto restarted = [&](RestartPolicy policy, Duration repair) {
    return play_loss(policy, NodeId(0), repair).started;
  };
  const Duration day = Duration::hours(24);
  EXPECT_EQ(restarted(RestartPolicy::kAtOnce, day), 105);  // 5 beats of a second are missing
  EXPECT_EQ(restarted(RestartPolicy::kAfterLease, day), 700);
  EXPECT_EQ(restarted(RestartPolicy::kWhenSafe, day), 1005);  // an operator has cut it off
  EXPECT_EQ(restarted(RestartPolicy::kNever, day), 0);
  // A node that boots sooner proves it sooner.
  EXPECT_EQ(restarted(RestartPolicy::kWhenSafe, Duration::minutes(5)), 405);
  EXPECT_EQ(restarted(RestartPolicy::kAfterLease, Duration::minutes(5)), 405);
  // A node that never comes back keeps no job from ending.
  EXPECT_EQ(play_loss(RestartPolicy::kNever, NodeId(0), Duration::max()).job.phase,
            JobPhase::kFailed);
  EXPECT_EQ(play_loss(RestartPolicy::kWhenSafe, NodeId(0), Duration::max()).job.phase,
            JobPhase::kFinished);
}

TEST_F(SilentNodeTest, WhatItHadDoneIsLostUnderEveryPolicyAlike) {
  add(0, 1000, 8);
  for (const FaultScope scope : {FaultScope(NodeId(0)), FaultScope(DomainId(4))}) {
    for (const RestartPolicy policy :
         {RestartPolicy::kAtOnce, RestartPolicy::kAfterLease, RestartPolicy::kWhenSafe}) {
      const Played played = play_loss(policy, scope, Duration::minutes(20));
      EXPECT_EQ(played.job.phase, JobPhase::kFinished);
      EXPECT_EQ(played.job.usage.faults, 1U);
      EXPECT_NEAR(device_hours(played.job.usage.lost) * 3600, 8 * 95.0, 8.0);
    }
  }
}

TEST_F(SilentNodeTest, AGangThatLosesItsRackGoesOnWhenThatIsBack) {
  add(0, 1000, 16);
  for (const RestartPolicy policy : {RestartPolicy::kAtOnce, RestartPolicy::kWhenSafe}) {
    const Played played = play_loss(policy, DomainId(4), Duration::minutes(30));
    EXPECT_EQ(played.started, 1905);
    EXPECT_NEAR(device_hours(played.job.usage.lost) * 3600, 16 * 95.0, 16.0);
  }
  // A job that loses one node of two restarts at that time, too.
  for (const RestartPolicy policy : {RestartPolicy::kAtOnce, RestartPolicy::kWhenSafe}) {
    const Played played = play_loss(policy, NodeId(1), Duration::minutes(30));
    EXPECT_EQ(played.started, 1905);
    EXPECT_NEAR(device_hours(played.job.usage.lost) * 3600, 16 * 95.0, 16.0);
  }
}

// The twin's predictions for a live cluster rely on this.
TEST_F(SimulationTest, AHistoryThatIsGoneOnWithInItsMiddleEndsAsItWouldHave) {
  add(0, 4'000, 8);
  add(0, 1'000, 8);
  add(1, 2'000, 16);
  add(2, 500, 4);
  add(3, 9'000, 12);
  for (const char* rules : {"helios", "orrery"}) {
    const std::vector<JobOutcome> whole = play("fifo", rules);
    const ReplayRules played = *replay_rules(rules);
    const auto jobs =
        trace_jobs(trace_, cluster_->resolve_context({}), cluster_->classes(), {.rules = played});
    const ControlSetup setup = cluster_->setup(*policy_under(played, "fifo"), Instant());
    const Instant middle = Instant() + Duration::seconds(2'000);
    Simulation first({setup, {played, {}, setup.plans}, jobs->jobs, {}});
    first.run(middle);
    Simulation second({setup, {played, {}, setup.plans}, {}, {}});
    const auto known = [&](const State&, JobId id) -> Simulation::KnownJob {
      const JobOutcome& job = whole[id.value()];
      return {.work = jobs->jobs[id.value()].truth.work, .left = job.end - middle};
    };
    const std::string snapshot = snapshot_of(first.state());
    ASSERT_TRUE(second.go_on_from(snapshot, middle, known));
    EXPECT_EQ(snapshot_of(second.state()), snapshot);
    second.run();
    EXPECT_TRUE(second.outcomes().empty()) << "none was handed in";
    for (const JobOutcome& job : whole) {
      const Job& again = second.state().job(job.job);
      EXPECT_EQ(again.phase, JobPhase::kFinished) << rules;
      EXPECT_EQ(seconds(again.end), seconds(job.end)) << rules << ", job " << job.job.value();
      EXPECT_EQ(seconds(again.first_start), seconds(job.start)) << rules;
    }
  }
}

}  // namespace
}  // namespace orrery
