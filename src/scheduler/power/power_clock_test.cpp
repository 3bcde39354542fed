#include "scheduler/power/power_clock.hpp"

#include <gtest/gtest.h>

#include "perf/repository_facts_test.hpp"
#include "scheduler/power/power_test.hpp"

namespace orrery {
namespace {

PowerModel h100() {
  Result<PowerModel> model =
      power_model(builtin_facts(), builtin_constants(), node_type("dgx-h100"), {});
  EXPECT_TRUE(model) << (model ? "" : model.error().text());
  return model.value_or(PowerModel{});
}

std::vector<ClockStep> ladder_of(const PowerLoad& load) {
  Result<std::vector<ClockStep>> ladder = clock_ladder(h100(), load);
  EXPECT_TRUE(ladder) << (ladder ? "" : ladder.error().text());
  return ladder.value_or(std::vector<ClockStep>{});
}

constexpr PowerLoad kMixed{.compute_share = 0.6, .memory_share = 0.2, .network_share = 0.2};

TEST(ClockLadder, FallsInDrawAndInThroughputButLessInThroughput) {
  const std::vector<ClockStep> ladder = ladder_of(kMixed);
  ASSERT_EQ(ladder.size(), 51u);
  EXPECT_EQ(ladder.front().clock, 1);
  EXPECT_EQ(ladder.front().throughput, 1);
  EXPECT_EQ(ladder.back().clock, 0.5);
  for (std::size_t i = 1; i < ladder.size(); ++i) {
    EXPECT_LT(ladder[i].each, ladder[i - 1].each);
    EXPECT_LT(ladder[i].throughput, ladder[i - 1].throughput);
  }
  EXPECT_LT(ladder[3].energy(), ladder[0].energy());
}

TEST(ClockLadder, TheFirstStepIsWhatThePowerModelSays) {
  const Result<DevicePower> power = power_at(h100(), kMixed);
  ASSERT_TRUE(power);
  EXPECT_NEAR(ladder_of(kMixed).front().each.value(), power->total().value(), 1e-9);
}

TEST(ClockLadder, WorkThatIsNotClockBoundLosesNothing) {
  const std::vector<ClockStep> waiting =
      ladder_of({.compute_share = 0, .network_share = 0.5, .idle_share = 0.5});
  EXPECT_EQ(waiting.back().throughput, 1);
  const double decode = ladder_of({.compute_share = 0, .memory_share = 1}).back().throughput;
  EXPECT_GT(decode, ladder_of({}).back().throughput);
  EXPECT_NEAR(ladder_of({}).back().throughput, 0.5, 1e-12);
}

TEST(ClockLadder, RefusesSharesThatAreNone) {
  EXPECT_FALSE(clock_ladder(h100(), {.compute_share = 0.4}));
}

TEST(ClockFor, TakesTheHighestClockThatFitsAndSaysWhatIsMissingAtTheLowest) {
  const Topology topology = built(powered_site());
  const PowerTree tree(topology);
  const PowerBudget budget(tree);
  PowerCaps caps(tree);
  const std::vector<ClockStep> ladder = ladder_of(kMixed);
  const std::vector<NodeShare> nodes{{NodeId(4), 8}, {NodeId(5), 8}};
  const GangPower gang{nodes, ladder};
  const PowerDomainId loop = power_domain(topology, PowerKind::kCoolingLoop, 1);
  EXPECT_EQ(clock_for(budget, caps, gang).value(), 0u);
  for (std::size_t step = 0; step < ladder.size(); ++step) {
    caps.set_cap(loop, ladder[step].each * 16 + Watts(0.01));
    EXPECT_EQ(clock_for(budget, caps, gang).value(), step);
  }
  caps.set_cap(loop, ladder.back().each * 16 - Watts(1));
  const auto none = clock_for(budget, caps, gang);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().domain, loop);
  EXPECT_NEAR(watts_of(none.error().missing).value(), 1, 0.01);
}

}  // namespace
}  // namespace orrery
