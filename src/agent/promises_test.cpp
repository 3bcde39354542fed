// Tests of the guarantees about failures (ARCHITECTURE.md, reliability), each on the real state
// machines in a small world.
#include <gtest/gtest.h>

#include <algorithm>

#include "agent/world_test.hpp"

namespace orrery {
namespace {

constexpr NodeId kFirst{0};
constexpr NodeId kSecond{1};

WorldJob long_job(RestartPolicy restart) {
  WorldJob job{.restart = restart, .work = Duration::hours(100)};
  if (restart == RestartPolicy::kAfterLease) {
    job.lease = {Lease::Kind::kBinding, Duration::minutes(10)};
  }
  return job;
}

template <class What>
std::size_t count(const World& world) {
  return static_cast<std::size_t>(
      std::count_if(world.heard.begin(), world.heard.end(),
                    [](const InputKind& input) { return std::holds_alternative<What>(input); }));
}

TEST(Promises, AJobRunsItsCourseAndLeavesNothingBehind) {
  World world(1, {});
  world.add({});
  world.run(Duration::seconds(10));
  EXPECT_EQ(world.jobs[0].phase, JobPhase::kRunning);
  world.run(Duration::minutes(2));
  EXPECT_EQ(world.jobs[0].phase, JobPhase::kFinished);
  EXPECT_EQ(world.jobs[0].attempt, 1);
  EXPECT_EQ(world.jobs[0].ends.at(1), 1);
  EXPECT_EQ(world.keepers(), 0);
  EXPECT_EQ(world.link().attempts(), 0);
}

TEST(Promises, TwelveHoursWithoutAControllerEndNoRankOfAJobWithoutALease) {
  World world(2, {.nodes = 1});
  WorldJob job = long_job(RestartPolicy::kWhenSafe);
  job.width = 1;
  world.add(job);
  world.run(Duration::seconds(10));
  const std::uint64_t started = world.starts;
  world.kill_controller();
  world.run(Duration::hours(12));
  EXPECT_EQ(world.processes({JobId(0), 1}), 1);
  world.start_controller();
  world.run(Duration::minutes(2));
  EXPECT_EQ(world.processes({JobId(0), 1}), 1);
  EXPECT_EQ(world.starts, started);
  EXPECT_EQ(world.jobs[0].phase, JobPhase::kRunning);
}

TEST(Promises, AnOrphanEndsWhenItsLimitHasPassed) {
  World world(3, {.nodes = 2});
  world.add(long_job(RestartPolicy::kWhenSafe));
  world.run(Duration::seconds(10));
  world.kill_controller();
  world.kill_agent(kFirst);
  world.kill_agent(kSecond);
  world.run(Duration::hours(25));
  EXPECT_EQ(world.processes({JobId(0), 1}), 0);
}

TEST(Promises, AfterAStartOfTheControllerEveryNodeHasAFullGracePeriod) {
  World world(4, {});
  world.record = true;
  world.run(Duration::seconds(10));
  world.kill_controller();
  for (std::uint32_t at = 0; at < 4; ++at) world.kill_agent(NodeId(at));
  world.run(Duration::minutes(5));
  world.start_controller();
  world.run(Duration::seconds(30));
  EXPECT_EQ(count<NodeHeard>(world), 0);
  world.run(Duration::seconds(6));
  EXPECT_EQ(world.health(kFirst), NodeHealth::kLost);
}

TEST(Promises, ANodeIsSuspectAfterTwoMissedHeartbeatsAndLostAfterFive) {
  World world(5, {});
  world.run(Duration::minutes(1));
  world.cut(kFirst);
  world.run(Duration::milliseconds(1400));
  EXPECT_EQ(world.health(kFirst), NodeHealth::kReady);
  world.run(Duration::milliseconds(1700));
  EXPECT_EQ(world.health(kFirst), NodeHealth::kSuspect);
  world.run(Duration::milliseconds(1300));
  EXPECT_EQ(world.health(kFirst), NodeHealth::kSuspect);
  world.run(Duration::milliseconds(1700));
  EXPECT_EQ(world.health(kFirst), NodeHealth::kLost);
  world.join(kFirst);
  world.run(Duration::seconds(2));
  EXPECT_EQ(world.health(kFirst), NodeHealth::kReady);
}

TEST(Promises, AJobWithFencedEffectsRestartsElsewhereAtOnceAndTheOldAttemptHasNoEffect) {
  World world(6, {});
  world.add(long_job(RestartPolicy::kAtOnce));
  world.run(Duration::seconds(10));
  const NodeId lost = world.jobs[0].nodes.front();
  world.cut(lost);
  world.run(Duration::minutes(1));
  EXPECT_EQ(world.jobs[0].attempt, 2);
  EXPECT_EQ(world.jobs[0].phase, JobPhase::kRunning);
  EXPECT_EQ(world.processes({JobId(0), 1}), 1) << "nobody can tell it to end";
  EXPECT_GT(world.refused, 0);
  world.join(lost);
  world.run(Duration::seconds(20));
  EXPECT_EQ(world.processes({JobId(0), 1}), 0);
  EXPECT_EQ(world.processes({JobId(0), 2}), 2);
}

TEST(Promises, AnyOtherJobWaitsUntilTheLostNodeReportsItGone) {
  World world(7, {});
  world.add(long_job(RestartPolicy::kWhenSafe));
  world.run(Duration::seconds(10));
  const NodeId lost = world.jobs[0].nodes.front();
  world.cut(lost);
  world.run(Duration::minutes(15));
  EXPECT_EQ(world.jobs[0].attempt, 1);
  EXPECT_EQ(world.jobs[0].holds.size(), 1);
  world.join(lost);
  world.run(Duration::minutes(1));
  EXPECT_EQ(world.jobs[0].attempt, 2);
  EXPECT_EQ(world.twice, 0);
}

TEST(Promises, AnyOtherJobRestartsWhenTheLostNodeHasANewBootId) {
  World world(8, {});
  world.add(long_job(RestartPolicy::kWhenSafe));
  world.run(Duration::seconds(10));
  const NodeId lost = world.jobs[0].nodes.front();
  world.reboot(lost);
  world.run(Duration::minutes(10));
  EXPECT_EQ(world.jobs[0].attempt, 1);
  world.start_agent(lost);
  world.run(Duration::minutes(1));
  EXPECT_EQ(world.jobs[0].attempt, 2);
  EXPECT_EQ(world.jobs[0].phase, JobPhase::kRunning);
  EXPECT_EQ(world.twice, 0);
}

TEST(Promises, ABindingLeaseIsKilledBeforeTheJobStartsElsewhere) {
  World world(9, {.ignores_term = 1});
  world.add(long_job(RestartPolicy::kAfterLease));
  world.run(Duration::minutes(5));
  const NodeId lost = world.jobs[0].nodes.front();
  world.cut(lost);
  world.run(Duration::minutes(7));
  EXPECT_EQ(world.processes({JobId(0), 1}), 1);
  EXPECT_EQ(world.jobs[0].attempt, 1);
  world.run(Duration::minutes(4));
  EXPECT_EQ(world.processes({JobId(0), 1}), 0);
  EXPECT_EQ(world.jobs[0].attempt, 2);
  EXPECT_EQ(world.twice, 0);
}

TEST(Promises, ABindingLeaseHoldsWithAFrozenAgentToo) {
  World world(10, {});
  world.add(long_job(RestartPolicy::kAfterLease));
  world.run(Duration::minutes(5));
  const NodeId lost = world.jobs[0].nodes.front();
  world.freeze(lost);
  world.run(Duration::minutes(30));
  EXPECT_EQ(world.jobs[0].attempt, 2);
  world.thaw(lost);
  world.run(Duration::minutes(5));
  EXPECT_EQ(world.jobs[0].attempt, 2);
  EXPECT_EQ(world.jobs[0].phase, JobPhase::kRunning);
  EXPECT_EQ(world.keepers(), 2);
  EXPECT_EQ(world.twice, 0);
}

TEST(Promises, AFrozenAgentThatWakesUpStartsNothingThatIsOver) {
  World world(11, {.nodes = 2});
  world.run(Duration::seconds(5));
  world.freeze(kFirst);
  world.add(long_job(RestartPolicy::kWhenSafe));  // its launch waits at the frozen agent
  world.run(Duration::minutes(1));
  EXPECT_EQ(world.processes({JobId(0), 1}), 0);
  world.thaw(kFirst);
  world.run(Duration::minutes(2));
  EXPECT_EQ(world.jobs[0].attempt, 2);
  EXPECT_EQ(world.jobs[0].phase, JobPhase::kRunning);
  EXPECT_EQ(world.twice, 0);
}

TEST(Promises, AnAgentThatDiesTakesNoRankWithItAndItsSuccessorAdoptsThem) {
  World world(12, {});
  world.add(long_job(RestartPolicy::kWhenSafe));
  world.run(Duration::seconds(10));
  const NodeId at = world.jobs[0].nodes.front();
  for (int i = 0; i < 20; ++i) {
    world.kill_agent(at);
    world.run(Duration::seconds(2));
    world.start_agent(at);
    world.run(Duration::seconds(3));
  }
  EXPECT_EQ(world.jobs[0].phase, JobPhase::kRunning);
  EXPECT_EQ(world.jobs[0].attempt, 1);
  EXPECT_EQ(world.starts, 2);
}

TEST(Promises, AnEndWhileAgentAndControllerAreAwayIsNotForgotten) {
  World world(13, {.nodes = 2});
  world.add({});
  world.run(Duration::seconds(10));
  world.kill_controller();
  world.kill_agent(kFirst);
  world.run(Duration::minutes(5));
  EXPECT_EQ(world.processes({JobId(0), 1}), 0);
  world.start_controller();
  world.start_agent(kFirst);
  world.run(Duration::minutes(1));
  EXPECT_EQ(world.jobs[0].phase, JobPhase::kFinished);
  EXPECT_EQ(world.jobs[0].ends.at(1), 1);
  EXPECT_EQ(world.keepers(), 0);
}

TEST(Promises, TheFirstRankThatFailsEndsTheOthers) {
  World world(14, {});
  world.record = true;
  world.add(long_job(RestartPolicy::kWhenSafe));
  world.run(Duration::seconds(10));
  world.kill_process(world.jobs[0].nodes.front(), {JobId(0), 1}, 139);
  world.run(Duration::seconds(15));
  EXPECT_EQ(count<RanksEnded>(world), 1);
  const auto ended = std::find_if(world.heard.begin(), world.heard.end(), [](const InputKind& i) {
    return std::holds_alternative<RanksEnded>(i);
  });
  EXPECT_EQ(std::get<RanksEnded>(*ended).kind, ExitKind::kProgram);
  EXPECT_EQ(std::get<RanksEnded>(*ended).blame.evidence, "signal 11 ended rank 0");
  EXPECT_EQ(world.processes({JobId(0), 1}), 0);
}

// --- All faults at once

void break_something(World& world) {
  Rng& rng = world.rng();
  const NodeId at(static_cast<std::uint32_t>(rng.below(4)));
  const Duration later = Duration::milliseconds(100 + static_cast<std::int64_t>(rng.below(20'000)));
  const auto some_keeper = [&]() -> std::optional<AttemptId> {
    const std::vector<AttemptId> here = world.keepers_on(at);
    if (here.empty()) return std::nullopt;
    return here[rng.below(here.size())];
  };
  switch (rng.below(8)) {
    case 0:
    case 1:
      world.kill_agent(at);
      world.after(later, [&world, at] { world.start_agent(at); });
      return;
    case 2:
      world.cut(at);
      world.after(later, [&world, at] { world.join(at); });
      return;
    case 3:
      world.freeze(at);
      world.after(later, [&world, at] { world.thaw(at); });
      return;
    case 4:
      if (const auto keeper = some_keeper()) world.kill_keeper(at, *keeper);
      return;
    case 5:
      if (const auto keeper = some_keeper()) world.kill_process(at, *keeper, 1);
      return;
    case 6:
      if (rng.below(4) != 0) return;
      world.reboot(at);
      world.after(later, [&world, at] { world.start_agent(at); });
      return;
    default:
      world.kill_controller();
      return;
  }
}

void survive(std::uint64_t seed) {
  SCOPED_TRACE(fmt::format("seed {}", seed));
  World world(seed, {.loss = 0.05,
                     .doubling = 0.1,
                     .delay_max = Duration::milliseconds(300),
                     .stray = 0.03,
                     .ignores_term = 0.3,
                     .crash = 0.002});
  world.add({.restart = RestartPolicy::kWhenSafe, .work = Duration::seconds(40)});
  world.add({.restart = RestartPolicy::kAtOnce, .work = Duration::seconds(40)});
  world.add({.restart = RestartPolicy::kAfterLease,
             .work = Duration::seconds(90),
             .lease = {Lease::Kind::kBinding, Duration::minutes(1)}});
  world.add({.restart = RestartPolicy::kWhenSafe, .width = 3, .work = Duration::seconds(20)});
  for (int fault = 0; fault < 60; ++fault) {
    world.run(Duration::milliseconds(static_cast<std::int64_t>(world.rng().below(10'000))));
    if (world.controller_lives()) {
      break_something(world);
    } else {
      world.start_controller();
    }
  }
  world.make_calm();
  world.run(Duration::minutes(15));
  EXPECT_EQ(world.twice, 0) << "two attempts ran at once";
  EXPECT_EQ(world.keepers(), 0);
  EXPECT_EQ(world.link().attempts(), 0);
  for (const WorldJob& job : world.jobs) {
    EXPECT_EQ(job.phase, JobPhase::kFinished);
    for (const auto& [attempt, ends] : job.ends) EXPECT_EQ(ends, 1) << "attempt " << attempt;
  }
}

TEST(Promises, HoldUnderLossDoublesReorderingAndRestartsOfEverything) {
  for (std::uint64_t seed = 100; seed < 106; ++seed) survive(seed);
}

}  // namespace
}  // namespace orrery
