#include "twin/holds/lent_fleet.hpp"

#include <gtest/gtest.h>

#include "twin/protocol/protocol_run.hpp"
#include "twin/protocol_sites_test.hpp"

namespace orrery {
namespace {

class HoldsTest : public ProtocolSitesTest {};

TEST_F(HoldsTest, AFleetWithALyingResourceManagerKeepsItsPromises) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    EXPECT_EQ(run_protocol(*sites_, seed, Lenders::kAll).failure, "") << "seed " << seed;
  }
}

TEST_F(HoldsTest, AJobRunsOnLentNodesWhichAreGivenBackWhenTheyAreIdle) {
  ProtocolWorld world(sites_->of(3), {.manager = ManagerRules{.nodes = 2, .pilot_nodes = 2}}, 1);
  world.submit({.devices = 16, .work = Duration::minutes(10)});
  world.run(Duration::minutes(4));
  ASSERT_EQ(world.failure(), "");
  EXPECT_EQ(world.state().job(JobId(0)).phase, JobPhase::kRunning);
  EXPECT_EQ(world.nodes().ranks().count({JobId(0), 1}), 16U);
  EXPECT_EQ(world.state().node(NodeId(1)).loan.hold, "slurm/pilot-1-1:1");
  EXPECT_EQ(world.state().node(NodeId(0)).loan.hold, "");
  world.run(Duration::minutes(20));
  EXPECT_EQ(world.failure(), "");
  EXPECT_TRUE(world.settled()) << world.unsettled();
  EXPECT_EQ(world.state().node(NodeId(1)).health, NodeHealth::kAbsent);
}

}  // namespace
}  // namespace orrery
