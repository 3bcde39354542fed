#include "scheduler/moves/defragment.hpp"

#include <gtest/gtest.h>

#include "scheduler/moves/moves_test.hpp"

namespace orrery {
namespace {

RoomGoal goal_of(RunningFleet& running, const GangRequest& request, std::int64_t gain) {
  return {running.place(request), request.devices, gain};
}

std::vector<RoomPlan> plans_of(const MovableFleet& movable, std::span<const RoomGoal> goals) {
  return make_room(movable.running.fleet.view(), movable.gangs, goals, movable.running.placer);
}

/// Met when every device of a place is ready and free. The tree must outlive it.
PlaceTry whole_place(const PlaceTree& tree, PlaceId place) {
  return [&tree, place](const FleetView& view) -> std::optional<std::vector<PlacedGang>> {
    std::vector<PlacedGang> gangs(1);
    const NodeRun& nodes = tree[place].nodes;
    for (std::uint32_t i = 0; i < nodes.count; ++i) {
      const NodeId node(nodes.first.value() + i);
      const std::uint32_t devices = tree.topology().group(node).devices;
      if (devices == 0) continue;
      if (view.node(node).available() != devices) return std::nullopt;
      gangs[0].allocation.ranks.push_back({node, view.node(node).free_mask});
    }
    return gangs;
  };
}

/// Three nodes, each with one small job.
struct Scattered : RunningFleet {
  Scattered() : RunningFleet(h100_racks(1, 3)) {
    start({{NodeId(0), 0x0f}}, 30);
    start({{NodeId(1), 0x03}}, 10);
    start({{NodeId(2), 0x01}}, 20);
  }
};

TEST(MakeRoom, MovesTheCheapestGangThatIsInTheWay) {
  Scattered running;
  MovableFleet movable(running, 8);
  const std::vector<RoomGoal> goals{goal_of(running, gang_of(8, 8), 100)};
  const std::vector<RoomPlan> plans = plans_of(movable, goals);
  ASSERT_EQ(plans.size(), 1u);
  ASSERT_EQ(plans[0].moves.size(), 1u);
  EXPECT_EQ(plans[0].moves[0].gang, 1u);
  EXPECT_EQ(plans[0].cost, 10);
  EXPECT_EQ(plans[0].gain, 100);
  EXPECT_EQ(plans[0].gangs[0].allocation.ranks[0].node, NodeId(1));
}

TEST(MakeRoom, MovesNobodyForLessThanTheMovesCost) {
  Scattered running;
  MovableFleet movable(running, 8);
  EXPECT_TRUE(plans_of(movable, std::vector{goal_of(running, gang_of(8, 8), 10)}).empty());
  EXPECT_EQ(plans_of(movable, std::vector{goal_of(running, gang_of(8, 8), 11)}).size(), 1u);
}

TEST(MakeRoom, MovesNobodyWhoHasNowhereToGo) {
  RunningFleet running(h100_racks(1, 2));
  running.start({{NodeId(0), 0x1f}}, 1);
  running.start({{NodeId(1), 0x1f}}, 1);
  MovableFleet movable(running, 8);
  EXPECT_TRUE(plans_of(movable, std::vector{goal_of(running, gang_of(8, 8), 100)}).empty());
}

TEST(MakeRoom, GoalsThatFitNeedNoPlanButKeepTheirPlace) {
  RunningFleet running(h100_racks(1, 2));
  running.start({{NodeId(0), 0x01}}, 1);
  MovableFleet movable(running, 8);
  // The first goal takes the free node; the only gang left to move has no other place.
  const std::vector<RoomGoal> goals{goal_of(running, gang_of(8, 8), 100),
                                    goal_of(running, gang_of(8, 8), 100)};
  EXPECT_TRUE(plans_of(movable, goals).empty());
}

TEST(MakeRoom, OnePlanBuildsOnTheOther) {
  Scattered running;
  MovableFleet movable(running, 8);
  const std::vector<RoomGoal> goals{goal_of(running, gang_of(8, 8), 100),
                                    goal_of(running, gang_of(8, 8), 100)};
  const std::vector<RoomPlan> plans = plans_of(movable, goals);
  ASSERT_EQ(plans.size(), 2u);
  for (const RoomPlan& plan : plans) {
    movable.carry_out(plan.moves);
    take(running.fleet, plan.gangs);
  }
  EXPECT_EQ(plans[1].goal, 1u);
}

TEST(MakeRoom, SharesLeaveADeviceThatAGoalNeedsWhole) {
  RunningFleet running(h100_racks(1, 2));
  running.start(Allocation{{{NodeId(0), 0x01}}, {}, 250}, 1, {});
  running.start(Allocation{{{NodeId(0), 0x01}}, {}, 250}, 1, {});
  running.start({{NodeId(1), 0x0f}}, 1000);
  MovableFleet movable(running, 8);
  const std::vector<RoomPlan> plans =
      plans_of(movable, std::vector{goal_of(running, gang_of(8, 8), 100)});
  ASSERT_EQ(plans.size(), 1u);
  ASSERT_EQ(plans[0].moves.size(), 2u);
  movable.carry_out(plans[0].moves);
  for (const GangMove& move : plans[0].moves) {
    EXPECT_EQ(move.to.ranks.front().node, NodeId(1));
  }
  take(running.fleet, plans[0].gangs);
}

TEST(MakeRoom, EmptiesAScaleUpDomain) {
  RunningFleet running(nvl72_racks(3));
  for (std::uint32_t rack = 0; rack < 3; ++rack) {
    for (std::uint32_t tray = 0; tray < 6 + rack; ++tray) {
      running.start({{NodeId(rack * 18 + tray), 0x01}}, 10);
    }
  }
  MovableFleet movable(running, 4);
  const PlaceId rack = running.tree.around(NodeId(0), TopologyLevel::kRack);
  const std::vector<RoomPlan> plans =
      plans_of(movable, std::vector{RoomGoal{whole_place(running.tree, rack), 72, 1000}});
  ASSERT_EQ(plans.size(), 1u);
  EXPECT_EQ(plans[0].moves.size(), 6u);
  movable.carry_out(plans[0].moves);
  EXPECT_TRUE(whole_place(running.tree, rack).fits(running.fleet.view()));
}

TEST(MakeRoom, PlansCanBeCarriedOutAndAreWorthIt) {
  int moves = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Rng rng(seed);
    RunningFleet running(h100_racks(2, 4));
    const std::uint64_t jobs = 5 + rng.below(12);
    for (std::uint64_t i = 0; i < jobs; ++i) {
      constexpr std::array<std::uint32_t, 5> kSizes{1, 2, 3, 4, 12};
      const auto cost = static_cast<std::int64_t>(1 + rng.below(50));
      running.start_anywhere(kSizes[rng.below(kSizes.size())], cost, rng);
    }
    MovableFleet movable(running, 1);
    const std::vector<RoomGoal> goals{goal_of(running, gang_of(8, 8), 60),
                                      goal_of(running, gang_of(16, 8, TopologyLevel::kRack), 150),
                                      goal_of(running, gang_of(4, 4), 20)};
    const std::vector<RoomPlan> plans = plans_of(movable, goals);
    std::vector<GangMove> all;
    for (const RoomPlan& plan : plans) {
      EXPECT_GT(plan.gain, plan.cost);
      EXPECT_EQ(plan.cost, cost_of(plan.moves, movable.gangs));
      movable.carry_out(plan.moves);
      take(running.fleet, plan.gangs);
      all.insert(all.end(), plan.moves.begin(), plan.moves.end());
    }
    cost_of(all, movable.gangs);  // expects that each gang moves at most once
    moves += static_cast<int>(all.size());
  }
  EXPECT_GT(moves, 100);
}

}  // namespace
}  // namespace orrery
