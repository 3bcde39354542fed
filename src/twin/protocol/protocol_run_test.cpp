#include "twin/protocol/protocol_run.hpp"

#include <gtest/gtest.h>

#include "twin/protocol_sites_test.hpp"

namespace orrery {
namespace {

class ProtocolTest : public ProtocolSitesTest {};

// Each of these seeds once broke a promise: a timer that was due at the moment of a crash (836,
// 1607), a late report that an attempt was gone before it was launched again (4490), a late answer
// to an earlier controller (6786), an end that was reported when its job was gone already (6431).
// Seeds with resized jobs: a job that restarts beside an earlier epoch (61), has nothing left when
// a node boots (16), comes back to a node whose part of it is done (4), or was to leave that node
// in the epoch before (220); an exit that is reported after the next epoch (4672); ranks that end
// before those that leave (7657). Seeds with tenants: an elastic job gives back more than its
// tenant has above its guarantee (388), or stops altogether because it cannot go on with less yet
// (553), and a full pass takes what is guaranteed by now (598). Seeds with false reports: an
// attempt that a node names before it starts (1582). Seeds with windows: a fault within one
// (26120). Seeds with shared devices: a fault beside sharers that leave for a job that gets the
// device whole, without end (7279).
TEST_F(ProtocolTest, KeepsItsPromisesWhereTheyWereOnceBroken) {
  for (const std::uint64_t seed : {4U, 16U, 61U, 220U, 388U, 553U, 598U, 836U, 1582U, 1607U, 4490U,
                                   4672U, 6431U, 6786U, 7279U, 7657U, 26120U}) {
    EXPECT_EQ(run_protocol(*sites_, seed, Lenders::kNone).failure, "") << "seed " << seed;
  }
}

TEST_F(ProtocolTest, TwelveHoursWithoutAControllerEndNoRankOfAJobWithoutALease) {
  ProtocolWorld world(sites_->of(3), {.beat = Duration::minutes(1)}, 1);
  world.submit({.devices = 16, .work = Duration::hours(20)});
  world.run(Duration::seconds(10));
  world.submit({.restart = RestartPolicy::kAtOnce, .devices = 1, .work = Duration::hours(20)});
  world.run(Duration::minutes(5));
  EXPECT_EQ(world.nodes().ranks().count({JobId(0), 1}), 16U);
  const std::uint64_t started = world.nodes().ranks().started();
  world.kill_controller("for long");
  world.run(Duration::hours(12));
  EXPECT_EQ(world.nodes().ranks().count({JobId(0), 1}), 16U);
  EXPECT_EQ(world.nodes().ranks().count({JobId(1), 1}), 1U);
  world.start_controller();
  world.run(Duration::minutes(10));
  EXPECT_EQ(world.nodes().ranks().started(), started);
  EXPECT_EQ(world.state().job(JobId(0)).phase, JobPhase::kRunning);
  EXPECT_EQ(world.failure(), "");
}

TEST_F(ProtocolTest, ABindingLeaseEndsWithoutAController) {
  ProtocolWorld world(sites_->of(3), {.drift = 100}, 1);
  world.submit({.restart = RestartPolicy::kAfterLease, .work = Duration::hours(1)});
  world.run(Duration::seconds(30));
  EXPECT_EQ(world.nodes().ranks().count({JobId(0), 1}), 1U);
  world.kill_controller("for long");
  world.run(Duration::minutes(1));
  EXPECT_EQ(world.nodes().ranks().count({JobId(0), 1}), 0U);
}

/// Where the only gang of a job is.
NodeId place_of(const ProtocolWorld& world, JobId job) {
  return world.state().running(job).gangs.front().allocation.ranks.front().node;
}

TEST_F(ProtocolTest, AJobOfALostNodeGoesOnElsewhereAtOnceAfterItsLeaseOrWhenItIsSafe) {
  ProtocolWorld world(sites_->of(3),
                      {.drift = 100, .beat = Duration::seconds(1), .lease = Duration::minutes(10)},
                      1);
  for (const RestartPolicy restart :
       {RestartPolicy::kAtOnce, RestartPolicy::kAfterLease, RestartPolicy::kWhenSafe}) {
    world.submit({.restart = restart, .work = Duration::hours(9)});
    world.run(Duration::minutes(1));
  }
  const NodeId lost = place_of(world, JobId(0));
  ASSERT_EQ(place_of(world, JobId(1)), lost);
  ASSERT_EQ(place_of(world, JobId(2)), lost);
  world.cut(lost);
  world.run(Duration::seconds(20));
  const auto attempt = [&](std::uint32_t job) { return world.state().job(JobId(job)).attempt; };
  EXPECT_EQ(attempt(0), 2U);
  EXPECT_EQ(world.nodes().ranks().count({JobId(1), 1}), 1U);
  world.kill_controller("in the midst of a lease");
  world.start_controller();
  world.run(Duration::minutes(9));
  EXPECT_EQ(world.nodes().ranks().count({JobId(1), 1}), 0U);
  EXPECT_EQ(attempt(1), 1U);
  world.run(Duration::minutes(4));
  EXPECT_EQ(attempt(1), 2U);
  EXPECT_NE(place_of(world, JobId(1)), lost);
  EXPECT_EQ(world.state().job(JobId(1)).phase, JobPhase::kRunning);
  EXPECT_EQ(attempt(2), 1U);
  world.join(lost);
  world.run(Duration::minutes(1));
  EXPECT_EQ(attempt(2), 2U);
  EXPECT_EQ(world.failure(), "");
}

TEST_F(ProtocolTest, ACapOfPowerIsKeptThoughTheControllerDiesBeforeItOrdersTheClock) {
  ProtocolWorld world(sites_->of(3), {.power_limited = true}, 1);
  world.submit({.devices = 24, .work = Duration::hours(1)});
  world.run(Duration::minutes(1));
  EXPECT_EQ(world.nodes().ranks().clock({JobId(0), 1}), 1);
  world.cap_power(Watts{3 * 8000.0});
  world.run(Duration::milliseconds(1));
  world.kill_controller("before its orders arrive");
  world.start_controller();
  world.run(Duration::minutes(1));
  EXPECT_LT(world.nodes().ranks().clock({JobId(0), 1}), 1);
  EXPECT_EQ(world.failure(), "");
}

}  // namespace
}  // namespace orrery
