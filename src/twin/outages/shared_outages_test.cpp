#include "twin/outages/shared_outages.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "twin/world/faulty_world_test.hpp"

namespace orrery {
namespace {

class SharedOutagesTest : public FaultyWorldTest {};

TEST_F(SharedOutagesTest, ASwitchTakesTheGangsWithItThatNeedIt) {
  add(1000, 16);  // on the first leaf
  add(1000, 8);   // on the same leaf, in one node
  add(2000, 32);  // on the second leaf
  const SwitchPlace leaf{FabricId(0), fabric().graph.leaf_of({0, 0})};
  strike(100, FaultKind::kSwitchDown, leaf, {.detection = kMinute, .repair = kMinute * 10});
  play();
  EXPECT_EQ(jobs_[0].usage.faults, 1U);
  EXPECT_EQ(end_of(0), 160 + 5 + 1000) << "it starts anew elsewhere when the loss is known";
  EXPECT_NEAR(device_hours(jobs_[0].usage.lost), hours(16 * 95), 1e-3);
  EXPECT_NEAR(device_hours(jobs_[0].usage.idle), hours(16 * (5 + 60 + 5)), 1e-3);
  EXPECT_EQ(end_of(1), 1005);
  EXPECT_EQ(end_of(2), 2005);
  EXPECT_EQ(ready_, 16) << "the nodes are back with their switch";
  const auto taken =
      told<NodeChanged, NodeHealth>([](const NodeChanged& node) { return node.health; });
  EXPECT_EQ(std::ranges::count(taken, std::pair(std::int64_t{160}, NodeHealth::kQuarantined)), 4);
}

TEST_F(SharedOutagesTest, AGangOnCutOffNodesWaitsForTheNetwork) {
  add(1000, 128);
  const SwitchPlace leaf{FabricId(0), fabric().graph.leaf_of({0, 0})};
  strike(100, FaultKind::kSwitchDown, leaf, {.detection = kMinute, .repair = kMinute * 10});
  play();
  EXPECT_EQ(jobs_[0].usage.faults, 1U);
  EXPECT_EQ(end_of(0), 760 + 5 + 1000);
}

TEST_F(SharedOutagesTest, ALinkIsWholeWhenTheLastOfItsFaultsIsOver) {
  add(1000, 8);
  strike(100, FaultKind::kLinkDown, port(0, 0), {.repair = Duration::seconds(100)});
  strike(150, FaultKind::kLinkDown, port(0, 0), {.repair = Duration::seconds(150)});
  play();
  const auto health =
      told<LinkChanged, float>([](const LinkChanged& link) { return link.state.health; });
  const std::vector<std::pair<std::int64_t, float>> expected{
      {100, 0}, {150, 0}, {200, 0}, {300, 1}};
  EXPECT_EQ(health, expected);
}

TEST_F(SharedOutagesTest, ASupplyIsWholeWhenTheLastOfItsFaultsIsOver) {
  add(1000, 8);
  strike(100, FaultKind::kUps, ups(), {.repair = Duration::seconds(100)});
  strike(150, FaultKind::kUps, ups(), {.repair = Duration::seconds(150)});
  play();
  const auto limited =
      told<PowerLimitSet, bool>([](const PowerLimitSet& set) { return set.limit.has_value(); });
  // Heartbeats are missing for 5 s before a loss of power is known.
  const std::vector<std::pair<std::int64_t, bool>> expected{
      {105, true}, {155, true}, {205, true}, {305, false}};
  EXPECT_EQ(limited, expected);
}

}  // namespace
}  // namespace orrery
