#include "scheduler/moves/repack.hpp"

#include <gtest/gtest.h>

#include "scheduler/moves/moves_test.hpp"

namespace orrery {
namespace {

RepackPlan repack_of(const MovableFleet& movable, const RepackTerms& terms) {
  return repack(movable.running.fleet.view(), movable.gangs, terms, movable.running.placer);
}

/// Racks with every device free.
std::uint32_t whole_racks(const RunningFleet& running) {
  std::uint32_t whole = 0;
  for (const Domain& domain : running.fleet.topology().domains()) {
    if (domain.level != Level::kRack) continue;
    const auto id =
        DomainId::at(static_cast<std::size_t>(&domain - running.fleet.topology().domains().data()));
    whole += running.fleet.view().free(id, FleetTypeId(0)).nodes == domain.nodes ? 1 : 0;
  }
  return whole;
}

/// Racks in which `percent` of the accelerators have a job of one each.
struct Shredded : RunningFleet {
  Shredded(int racks, std::uint64_t percent, std::uint64_t seed)
      : RunningFleet(nvl72_racks(racks)) {
    Rng rng(seed);
    for (std::uint32_t node = 0; node < fleet.topology().node_count(); ++node) {
      for (std::uint32_t device = 0; device < 4; ++device) {
        if (rng.below(100) < percent) start({{NodeId(node), std::uint64_t{1} << device}}, 10);
      }
    }
  }
};

TEST(Repack, ShreddedRacksBecomeUsableAgain) {
  Shredded running(33, 30, 1);
  const std::size_t jobs = running.held.size();
  EXPECT_EQ(whole_racks(running), 0u);
  MovableFleet movable(running, 4);
  const RepackPlan plan = repack_of(movable, {.gain_per_device = 100});
  movable.carry_out(plan.moves);
  // All jobs could share this many racks.
  const auto full = static_cast<std::uint32_t>((jobs + 71) / 72);
  EXPECT_EQ(plan.whole_before, 0u);
  EXPECT_EQ(plan.whole_after, 33 - full);
  EXPECT_EQ(whole_racks(running), plan.whole_after);
  EXPECT_EQ(plan.cost, cost_of(plan.moves, movable.gangs));
  EXPECT_LT(plan.moves.size(), jobs * 3 / 4);
}

TEST(Repack, ProposesNothingMoreOnItsResult) {
  for (const std::uint64_t percent : {5u, 30u, 60u, 90u}) {
    Shredded running(12, percent, percent);
    MovableFleet before(running, 4);
    before.carry_out(repack_of(before, {.gain_per_device = 1000}).moves);
    MovableFleet after(running, 4);
    EXPECT_TRUE(repack_of(after, {.gain_per_device = 1000}).moves.empty());
  }
}

TEST(Repack, EmptiesNoMorePlacesThanAreWanted) {
  Shredded running(8, 30, 1);
  MovableFleet movable(running, 4);
  const RepackPlan plan = repack_of(movable, {.gain_per_device = 100, .wanted = 2});
  EXPECT_EQ(plan.whole_after, 2u);
  movable.carry_out(plan.moves);
  EXPECT_EQ(whole_racks(running), 2u);
}

TEST(Repack, LeavesAPlaceThatIsNotWorthItsMoves) {
  RunningFleet running(nvl72_racks(2));
  for (std::uint32_t rack = 0; rack < 2; ++rack) {
    running.start({{NodeId(rack * 18), 0x01}}, 72 * 5);
  }
  MovableFleet movable(running, 4);
  EXPECT_TRUE(repack_of(movable, {.gain_per_device = 5}).moves.empty());
  EXPECT_EQ(repack_of(movable, {.gain_per_device = 6}).moves.size(), 1u);
}

TEST(Repack, LeavesPlacesWithDevicesThatAreNotMovableOrNotReady) {
  RunningFleet running(nvl72_racks(3));
  running.start({{NodeId(0), 0x01}}, 10);
  running.start({{NodeId(18), 0x03}}, 10);
  running.start({{NodeId(36), 0x07}}, 10);
  running.fleet.set_free(NodeId(1), 0x0e);
  running.fleet.set_health(NodeId(20), NodeHealth::kRepairing);
  MovableFleet movable(running, 4);
  const RepackPlan plan = repack_of(movable, {.gain_per_device = 100});
  ASSERT_EQ(plan.moves.size(), 1u);
  EXPECT_EQ(plan.moves[0].gang, 2u);
}

TEST(Repack, ComesToAnEndAndNeverMakesItWorse) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Rng rng(seed);
    RunningFleet running(h100_racks(6, 3));
    const std::uint64_t jobs = 4 + rng.below(20);
    for (std::uint64_t i = 0; i < jobs; ++i) {
      constexpr std::array<std::uint32_t, 6> kSizes{1, 2, 4, 5, 8, 20};
      const auto cost = static_cast<std::int64_t>(1 + rng.below(500));
      running.start_anywhere(kSizes[rng.below(kSizes.size())], cost, rng);
    }
    std::uint32_t whole = whole_racks(running);
    int calls = 0;
    for (;; ++calls) {
      ASSERT_LE(calls, 6);
      MovableFleet movable(running, 1);
      const RepackPlan plan = repack_of(movable, {.gain_per_device = 20});
      ASSERT_EQ(plan.whole_before, whole);
      if (plan.moves.empty()) break;
      EXPECT_GT(plan.gain, plan.cost);
      EXPECT_EQ(plan.cost, cost_of(plan.moves, movable.gangs));
      EXPECT_GT(plan.whole_after, plan.whole_before);
      movable.carry_out(plan.moves);
      whole = whole_racks(running);
      ASSERT_EQ(plan.whole_after, whole);
    }
  }
}

}  // namespace
}  // namespace orrery
