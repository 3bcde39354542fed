#include "twin/outages/node_outages.hpp"

#include <gtest/gtest.h>

#include "twin/world/faulty_world_test.hpp"

namespace orrery {
namespace {

class NodeOutagesTest : public FaultyWorldTest {};

TEST_F(NodeOutagesTest, AJobThatStartsOnASlowNodeIsSlow) {
  add(50, 128);
  add(100, 128);
  strike(10, FaultKind::kFailSlow, NodeId(3), {.repair = kMinute * 60, .slowdown = 2});
  play();
  EXPECT_EQ(end_of(0), 10 + 2 * 45);
  EXPECT_EQ(end_of(1), 100 + 5 + 2 * 100);
}

TEST_F(NodeOutagesTest, AGangIsAsSlowAsItsSlowestNode) {
  add(100, 128);
  strike(10, FaultKind::kFailSlow, NodeId(3), {.repair = Duration::seconds(10), .slowdown = 2});
  strike(15, FaultKind::kFailSlow, NodeId(4), {.repair = kMinute * 60, .slowdown = 4});
  play();
  // 5 s at full speed, 2.5 s of work by the second fault, the rest at a quarter.
  EXPECT_NEAR((jobs_[0].end - Instant()).count_seconds(), 15 + 4 * 92.5, 1e-3);
}

TEST_F(NodeOutagesTest, ASlowNodeThatNeedsHandsIsSlowUntilItIsMended) {
  add(1000, 128);
  add(100, 128);
  strike(105, FaultKind::kFailSlow, NodeId(3),
         {.remedy = Remedy::kRepair, .repair = kMinute, .slowdown = 2});
  play();
  EXPECT_EQ(end_of(0), 105 + 2 * 900) << "it is not mended under the job";
  EXPECT_EQ(end_of(1), 1905 + 60 + 5 + 100);
}

}  // namespace
}  // namespace orrery
