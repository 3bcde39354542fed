#include "executor/holds/hold_demand.hpp"

#include <gtest/gtest.h>

#include "control/scripted_cluster_test.hpp"

namespace orrery {
namespace {

/// Four absent nodes of eight accelerators.
class HoldDemandTest : public testing::Test {
 protected:
  HoldDemandTest() {
    for (std::uint32_t n = 0; n < 4; ++n) {
      cluster_.send(NodeAbsent{NodeId(n), false, {}});
      lent_.nodes.emplace_back(n);
    }
    lent_.most = 4;
  }
  JobId submit(std::uint32_t devices) { return cluster_.submit(cluster_.job(devices)); }
  [[nodiscard]] std::uint32_t needed() {
    cluster_.tick();
    return nodes_needed(job_needs(cluster_.core(), lent_, Duration::hours(2)), lent_,
                        cluster_.topology())
        .nodes;
  }

  ScriptedCluster cluster_{{.nodes_begin = NodeHealth::kJoining}};
  HoldNodes lent_;
};

TEST_F(HoldDemandTest, IsThatOfTheJobsThatWaitForNodes) {
  EXPECT_EQ(needed(), 0u);
  submit(16);
  EXPECT_EQ(needed(), 2u);
  submit(3);
  submit(4);
  EXPECT_EQ(needed(), 3u) << "the small ones share a node";
  submit(32);
  EXPECT_EQ(needed(), 4u) << "no more than are lent";
}

TEST_F(HoldDemandTest, LeavesOutJobsThatNeedMoreNodesThanAreLent) {
  lent_.most = 2;
  submit(24);
  EXPECT_EQ(needed(), 0u);
  submit(16);
  EXPECT_EQ(needed(), 2u);
}

TEST_F(HoldDemandTest, LeavesOutJobsThatAreLongerThanALoan) {
  Submission longer = cluster_.job(8);
  longer.request.estimate = Duration::hours(3);
  (void)cluster_.submit(longer);
  EXPECT_EQ(needed(), 0u);
  Submission limited = cluster_.job(8);
  limited.request.estimate.reset();
  limited.request.time_limit = Duration::hours(3);
  (void)cluster_.submit(limited);
  EXPECT_EQ(needed(), 0u);
  Submission endless = cluster_.job(8);
  endless.request.estimate.reset();
  (void)cluster_.submit(endless);
  EXPECT_EQ(needed(), 1u);
  EXPECT_EQ(nodes_needed(job_needs(cluster_.core(), lent_, Duration::seconds(-60)), lent_,
                         cluster_.topology())
                .nodes,
            1u)
      << "a loan too short for any job of known length";
}

TEST_F(HoldDemandTest, FollowsACancelledJobThatBlockedTheOthers) {
  ScriptedCluster blocking({.policy = "fifo:blocking=true", .nodes_begin = NodeHealth::kJoining});
  for (std::uint32_t n = 0; n < 4; ++n) blocking.send(NodeAbsent{NodeId(n), false, {}});
  const JobId first = blocking.submit(blocking.job(24));
  (void)blocking.submit(blocking.job(8));
  blocking.tick();
  blocking.send(CancelJob{first});
  blocking.tick();
  EXPECT_EQ(nodes_needed(job_needs(blocking.core(), lent_, Duration::hours(2)), lent_,
                         blocking.topology())
                .nodes,
            1u);
}

}  // namespace
}  // namespace orrery
