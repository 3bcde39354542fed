#include "twin/protocol_run.hpp"

#include <gtest/gtest.h>

#include "hardware/builtin_catalog.hpp"
#include "hardware/catalog.hpp"

namespace orrery {
namespace {

class ProtocolTest : public testing::Test {
 protected:
  void SetUp() override {
    const Result<Catalog> catalog = Catalog::load(builtin_catalog(), "");
    ASSERT_TRUE(catalog) << catalog.error().text();
    Result<ProtocolSites> sites = ProtocolSites::make(*catalog);
    ASSERT_TRUE(sites) << sites.error().text();
    sites_ = std::make_unique<ProtocolSites>(*std::move(sites));
  }

  std::unique_ptr<ProtocolSites> sites_;
};

// Each once broke a promise: a timer that was due in the moment of a crash (836, 1607), a late
// report that an attempt was gone before it was launched again (4490), a late answer to an earlier
// controller (6786, 12523), an end that was told when its job was gone already (6431).
TEST_F(ProtocolTest, KeepsItsPromisesWhereTheyWereOnceBroken) {
  for (const std::uint64_t seed : {836U, 1607U, 4490U, 6431U, 6786U, 12523U}) {
    EXPECT_EQ(run_protocol(*sites_, seed).failure, "") << "seed " << seed;
  }
}

TEST_F(ProtocolTest, TwelveHoursWithoutAControllerEndNoRankOfAJobWithoutALease) {
  ProtocolWorld world(sites_->of(3), {.beat = Duration::minutes(1)}, 1);
  world.submit({.devices = 16, .work = Duration::hours(20)});
  world.run(Duration::seconds(10));
  world.submit({.restart = RestartPolicy::kAtOnce, .devices = 1, .work = Duration::hours(20)});
  world.run(Duration::minutes(5));
  EXPECT_EQ(world.nodes().processes({JobId(0), 1}), 16U);
  const std::uint64_t started = world.nodes().started();
  world.kill_controller("for long");
  world.run(Duration::hours(12));
  EXPECT_EQ(world.nodes().processes({JobId(0), 1}), 16U);
  EXPECT_EQ(world.nodes().processes({JobId(1), 1}), 1U);
  world.start_controller();
  world.run(Duration::minutes(10));
  EXPECT_EQ(world.nodes().started(), started);
  EXPECT_EQ(world.state().job(JobId(0)).phase, JobPhase::kRunning);
  EXPECT_EQ(world.failure(), "");
}

TEST_F(ProtocolTest, ABindingLeaseEndsWithoutAController) {
  ProtocolWorld world(sites_->of(3), {.drift = 100}, 1);
  world.submit({RestartPolicy::kAfterLease, 1, Duration::hours(1)});
  world.run(Duration::seconds(30));
  EXPECT_EQ(world.nodes().processes({JobId(0), 1}), 1U);
  world.kill_controller("for long");
  world.run(Duration::minutes(1));
  EXPECT_EQ(world.nodes().processes({JobId(0), 1}), 0U);
}

}  // namespace
}  // namespace orrery
