#include "scheduler/preempt/preemption.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "scheduler/running_test.hpp"

namespace orrery {
namespace {

constexpr std::uint64_t kNode = 0xff;

std::optional<std::uint32_t> agree(const PreemptionPlan&) { return std::nullopt; }

PreemptionAsk ask_of(RunningFleet& running, const GangRequest& request) {
  return {.place = running.place(request), .object = agree, .devices = request.devices};
}

std::optional<PreemptionPlan> plan_of(RunningFleet& running, const GangRequest& request) {
  return plan_preemption(running.fleet.view(), running.victims(), ask_of(running, request));
}

/// Two nodes full of jobs of four devices: 0 and 1, 2 and 3.
struct TwoFullNodes : RunningFleet {
  explicit TwoFullNodes(const std::array<std::int64_t, 4>& job_costs)
      : RunningFleet(h100_racks(1, 2)) {
    for (std::uint32_t job = 0; job < 4; ++job) {
      start({{NodeId(job / 2), job % 2 == 0 ? 0x0fu : 0xf0u}}, job_costs[job]);
    }
  }
};

TEST(Preemption, NobodyYieldsToAJobThatFits) {
  RunningFleet running(h100_racks(1, 2));
  running.start({{NodeId(0), kNode}}, 5);
  const auto plan = plan_of(running, gang_of(8, 8));
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->yields.empty());
  EXPECT_EQ(plan->cost, 0);
  EXPECT_EQ(plan->gangs.at(0).allocation.ranks.at(0).node, NodeId(1));
}

TEST(Preemption, TheCheapestJobThatMakesRoomYields) {
  TwoFullNodes running({40, 30, 10, 20});
  const auto plan = plan_of(running, gang_of(4, 4));
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->yields, (std::vector<Yield>{{2, {}}}));
  EXPECT_EQ(plan->cost, 10);
}

TEST(Preemption, JobsOfOneNodeYieldToAJobThatNeedsANode) {
  TwoFullNodes running({1, 50, 20, 20});
  const auto plan = plan_of(running, gang_of(8, 8));
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->yields, (std::vector<Yield>{{2, {}}, {3, {}}}));
  EXPECT_EQ(plan->cost, 40);
}

TEST(Preemption, ADearJobYieldsWhenItsNeighboursCostLess) {
  // By cost a device the second node is emptied first; in all, the first node costs less.
  TwoFullNodes running({0, 30, 20, 20});
  const auto plan = plan_of(running, gang_of(8, 8));
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->cost, 30);
}

TEST(Preemption, ASmallJobTakesASmallVictim) {
  RunningFleet running(h100_racks(1, 2));
  running.start({{NodeId(0), kNode}}, 8);
  running.start({{NodeId(1), 0x01}}, 2);
  running.start({{NodeId(1), 0xfe}}, 70);
  const auto plan = plan_of(running, gang_of(1, 1));
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->yields, (std::vector<Yield>{{1, {}}}));
}

TEST(Preemption, WhatFitsNowhereTakesNobody) {
  TwoFullNodes running({1, 1, 1, 1});
  EXPECT_FALSE(plan_of(running, gang_of(24, 8)));
}

TEST(Preemption, DevicesOfANodeThatIsNotReadyMakeNoRoom) {
  TwoFullNodes running({1, 1, 9, 9});
  running.fleet.set_health(NodeId(0), NodeHealth::kDraining);
  const auto plan = plan_of(running, gang_of(8, 8));
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->yields, (std::vector<Yield>{{2, {}}, {3, {}}}));
  running.fleet.set_health(NodeId(1), NodeHealth::kLost);
  EXPECT_FALSE(plan_of(running, gang_of(8, 8)));
}

TEST(Preemption, JobsThatShareADeviceYieldTogether) {
  RunningFleet running(h100_racks(1, 1));
  running.start({{NodeId(0), 0xfe}}, 100);
  running.start(Allocation{{{NodeId(0), 0x01}}, {}, 500}, 10);
  running.start(Allocation{{{NodeId(0), 0x01}}, {}, 300}, 20);
  const auto plan = plan_of(running, gang_of(1, 1));
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->yields, (std::vector<Yield>{{1, {}}, {2, {}}}));
  EXPECT_EQ(plan->cost, 30);
}

TEST(Preemption, AnElasticJobGivesUpOnlyTheNodesThatAreNeeded) {
  RunningFleet running(h100_racks(1, 4));
  running.start({{NodeId(0), kNode}, {NodeId(1), kNode}, {NodeId(2), kNode}}, 900);
  running.start({{NodeId(3), kNode}}, 50);
  std::vector<Victim> victims = running.victims();
  const std::vector<VictimPart> parts{{0, NodeId(1), 30}, {0, NodeId(2), 40}};
  victims[0].parts = parts;
  const auto plan_for = [&](std::uint32_t devices) {
    return plan_preemption(running.fleet.view(), victims, ask_of(running, gang_of(devices, 8)));
  };
  const auto one = plan_for(8);
  ASSERT_TRUE(one);
  EXPECT_EQ(one->yields, (std::vector<Yield>{{0, {0}}}));
  EXPECT_EQ(one->cost, 30);
  const auto three = plan_for(24);
  ASSERT_TRUE(three);
  EXPECT_EQ(three->yields, (std::vector<Yield>{{0, {0, 1}}, {1, {}}}));
  EXPECT_EQ(three->cost, 120);
  const auto four = plan_for(32);
  ASSERT_TRUE(four);
  EXPECT_EQ(four->yields, (std::vector<Yield>{{0, {}}, {1, {}}}));
  EXPECT_EQ(four->cost, 950);
}

TEST(Preemption, AVictimObjectedToIsLeftAlone) {
  TwoFullNodes running({10, 20, 30, 40});
  PreemptionAsk ask = ask_of(running, gang_of(4, 4));
  ask.object = [](const PreemptionPlan& plan) -> std::optional<std::uint32_t> {
    for (const Yield& yield : plan.yields) {
      if (yield.victim < 2) return yield.victim;
    }
    return std::nullopt;
  };
  const auto plan = plan_preemption(running.fleet.view(), running.victims(), ask);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->yields, (std::vector<Yield>{{2, {}}}));
  ask.object = [](const PreemptionPlan& of) { return std::optional(of.yields.front().victim); };
  EXPECT_FALSE(plan_preemption(running.fleet.view(), running.victims(), ask));
}

TEST(Preemption, APlanDearerThanAllowedIsNone) {
  TwoFullNodes running({10, 20, 30, 40});
  PreemptionAsk ask = ask_of(running, gang_of(8, 8));
  ask.cost_max = 30;
  EXPECT_TRUE(plan_preemption(running.fleet.view(), running.victims(), ask));
  ask.cost_max = 29;
  EXPECT_FALSE(plan_preemption(running.fleet.view(), running.victims(), ask));
}

// ---- against every subset of the victims ----

/// A random small fleet, and a random request.
struct Scene {
  explicit Scene(std::uint64_t seed) : rng(seed), running(h100_racks(2, 3)) {
    const std::size_t jobs = 4 + rng.below(8);
    constexpr std::array<std::uint32_t, 8> kSizes{1, 1, 2, 4, 4, 8, 8, 16};
    for (std::size_t i = 0; i < jobs; ++i) {
      const std::uint32_t devices = kSizes[rng.below(kSizes.size())];
      running.start_anywhere(devices, static_cast<std::int64_t>(devices * (10 + rng.below(1000))),
                             rng);
    }
    // Devices that are in use by no victim cannot be taken.
    for (std::uint32_t node = 0; node < 6; ++node) {
      const std::uint64_t free = running.fleet.view().node(NodeId(node)).free_mask;
      running.fleet.set_free(NodeId(node), free & rng.next_u64() & rng.next_u64());
    }
    constexpr std::array<std::uint32_t, 6> kAsked{1, 4, 8, 12, 16, 24};
    const std::uint32_t devices = kAsked[rng.below(kAsked.size())];
    request = gang_of(devices, std::min(devices, rng.below(2) == 0 ? 4u : 8u),
                      rng.below(2) == 0 ? TopologyLevel::kRack : TopologyLevel::kFleet);
  }

  /// The cost if exactly these are preempted, if the job fits then.
  [[nodiscard]] std::optional<std::int64_t> cost_of(std::uint32_t subset) {
    FleetOverlay overlay(running.fleet.view());
    std::int64_t cost = 0;
    for (std::uint32_t i = 0; i < running.held.size(); ++i) {
      if ((subset >> i & 1) == 0) continue;
      give_back(overlay, running.allocations[i], {});
      cost += running.costs[i];
    }
    if (!running.placer.place(overlay.view(), request)) return std::nullopt;
    return cost;
  }
  [[nodiscard]] std::optional<std::int64_t> optimum() {
    std::optional<std::int64_t> best;
    for (std::uint32_t subset = 0; subset < 1u << running.held.size(); ++subset) {
      const std::optional<std::int64_t> cost = cost_of(subset);
      if (cost && (!best || *cost < *best)) best = cost;
    }
    return best;
  }

  Rng rng;
  RunningFleet running;
  GangRequest request;
};

std::uint32_t subset_of(const PreemptionPlan& plan) {
  std::uint32_t subset = 0;
  for (const Yield& yield : plan.yields) subset |= 1u << yield.victim;
  return subset;
}

TEST(Preemption, IsFoundWheneverItIsPossibleAndCostsLittleMoreThanTheCheapest) {
  int possible = 0;
  int exact = 0;
  double excess = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Scene scene(seed);
    const std::optional<std::int64_t> optimum = scene.optimum();
    const auto plan = plan_of(scene.running, scene.request);
    ASSERT_EQ(plan.has_value(), optimum.has_value());
    if (!plan || *optimum == 0) continue;
    ++possible;
    ASSERT_EQ(scene.cost_of(subset_of(*plan)), plan->cost);
    exact += plan->cost == *optimum ? 1 : 0;
    excess += static_cast<double>(plan->cost) / static_cast<double>(*optimum) - 1;
  }
  fmt::print("{} plans, {:.1f} % the cheapest there is, {:.2f} % dearer on average\n", possible,
             100.0 * exact / possible, 100 * excess / possible);
  ASSERT_GT(possible, 100);
  EXPECT_LT(excess / possible, 0.05);
}

TEST(Preemption, NoVictimCouldBeLeftOut) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Scene scene(seed);
    const auto plan = plan_of(scene.running, scene.request);
    if (!plan) continue;
    const std::uint32_t all = subset_of(*plan);
    for (const Yield& yield : plan->yields) {
      EXPECT_FALSE(scene.cost_of(all & ~(1u << yield.victim)));
    }
  }
}

/// Removes what the plan preempts from the fleet.
void carry_out(const PreemptionPlan& plan, std::span<const Victim> victims, Fleet& fleet) {
  for (const Yield& yield : plan.yields) {
    const Victim& victim = victims[yield.victim];
    const Allocation& held = *victim.gangs[0].allocation;
    if (yield.parts.empty()) give_back(fleet, held, {});
    for (const std::uint32_t part : yield.parts) {
      const NodeId node = victim.parts[part].node;
      const auto at = std::find_if(held.ranks.begin(), held.ranks.end(),
                                   [&](const NodeDevices& entry) { return entry.node == node; });
      give_back(fleet, Allocation{{*at}, {}, kWholeDevice}, {});
    }
  }
}

TEST(Preemption, APlanCanBeCarriedOut) {
  int in_parts = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Scene scene(seed);
    RunningFleet& running = scene.running;
    // Every job can go on with the first of its nodes.
    std::vector<Victim> victims = running.victims();
    std::vector<std::vector<VictimPart>> parts(victims.size());
    for (std::size_t v = 0; v < victims.size(); ++v) {
      const std::vector<NodeDevices>& ranks = running.allocations[v].ranks;
      for (std::size_t i = 1; i < ranks.size(); ++i) {
        parts[v].push_back({0, ranks[i].node, static_cast<std::int64_t>(scene.rng.below(100))});
      }
      victims[v].cost += 800;
      victims[v].parts = parts[v];
    }
    const PreemptionAsk ask = ask_of(running, scene.request);
    const auto plan = plan_preemption(running.fleet.view(), victims, ask);
    ASSERT_EQ(plan.has_value(), plan_of(running, scene.request).has_value());
    if (!plan) continue;
    for (const Yield& yield : plan->yields) in_parts += yield.parts.empty() ? 0 : 1;
    carry_out(*plan, victims, running.fleet);
    ASSERT_EQ(plan->gangs.size(), 1u);
    take(running.fleet, plan->gangs);  // asserts that the devices are free
    EXPECT_EQ(plan->gangs[0].allocation.devices(), scene.request.devices);
  }
  EXPECT_GT(in_parts, 50);
}

TEST(Preemption, TheSameQuestionHasTheSameAnswer) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Scene scene(seed);
    Scene again(seed);
    const auto plan = plan_of(scene.running, scene.request);
    const auto other = plan_of(again.running, again.request);
    ASSERT_EQ(plan.has_value(), other.has_value());
    if (!plan) continue;
    EXPECT_EQ(plan->yields, other->yields);
    EXPECT_EQ(plan->gangs[0].allocation, other->gangs[0].allocation);
  }
}

}  // namespace
}  // namespace orrery
