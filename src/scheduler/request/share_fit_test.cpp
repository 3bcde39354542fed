#include "scheduler/request/share_fit.hpp"

#include <gtest/gtest.h>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

constexpr ShareRule kRules[] = {ShareRule::kBestFit, ShareRule::kFragmentation, ShareRule::kWorth};

struct Free {
  std::int64_t cpu = 0;
  std::int64_t memory = 1'000'000;
  std::vector<int> devices = {};
};

ShareNode node_of(const Free& free) {
  ShareNode node{.cpu_free = free.cpu, .memory_free = free.memory};
  for (const int thousandths : free.devices) {
    node.device_free[static_cast<std::size_t>(node.devices++)] =
        static_cast<std::int16_t>(thousandths);
  }
  return node;
}

ShareRequest part(std::int64_t cpu, int thousandths) {
  return {.cpu = cpu, .memory = 1, .devices = 1, .thousandths = thousandths};
}

ShareFit fit_of(ShareRule rule, const std::vector<ShareRequest>& typical,
                const std::vector<Free>& nodes) {
  std::vector<ShareNode> made;
  made.reserve(nodes.size());
  for (const Free& free : nodes) made.push_back(node_of(free));
  return {rule, TypicalRequests::make(typical), made};
}

TEST(ShareFit, SaysNoWhereTheRequestFitsNowhere) {
  for (const ShareRule rule : kRules) {
    ShareFit fit = fit_of(rule, {}, {{.cpu = 4000, .devices = {400, 400}}});
    EXPECT_FALSE(fit.choose(part(1000, 500)));
    EXPECT_FALSE(fit.choose(part(5000, 300)));
    EXPECT_TRUE(fit.choose(part(4000, 400)));
  }
}

TEST(ShareFit, OfEqualNodesTheFirstIsChosenUnderEveryRule) {
  const std::vector<ShareRequest> typical = {part(1000, 500)};
  for (const ShareRule rule : kRules) {
    ShareFit fit = fit_of(rule, typical, std::vector<Free>(3, {.cpu = 4000, .devices = {1000}}));
    EXPECT_EQ(fit.choose(part(1000, 500))->node, ShareNodeId(0));
  }
}

TEST(ShareFit, BestFitTakesTheNodeAndTheDeviceWithTheLeastLeft) {
  ShareFit fit =
      fit_of(ShareRule::kBestFit, {},
             {{.cpu = 9000, .devices = {1000, 1000}}, {.cpu = 9000, .devices = {1000, 600, 500}}});
  EXPECT_EQ(fit.choose(part(0, 900))->node, ShareNodeId(0));
  fit = fit_of(ShareRule::kBestFit, {},
               {{.cpu = 9000, .devices = {1000, 1000}}, {.cpu = 9000, .devices = {700, 600, 500}}});
  const std::optional<ShareChoice> choice = fit.choose(part(0, 550));
  EXPECT_EQ(choice->node, ShareNodeId(1));
  EXPECT_EQ(choice->devices, 0b010);
}

TEST(ShareFit, FragmentationIsWhatTypicalRequestsCannotUse) {
  const std::vector<ShareRequest> requests = {
      part(1000, 600),  // cannot use the 500 of one device
      part(9000, 100),  // lacks CPU: cannot use anything
      {.cpu = 100, .devices = 2, .thousandths = kDeviceThousandths},  // lacks a device
      {.cpu = 100}};                                                  // uses no device at all
  const double fragmentation = node_fragmentation(node_of({.cpu = 4000, .devices = {500, 1000}}),
                                                  TypicalRequests::make(requests));
  EXPECT_DOUBLE_EQ(fragmentation, (500 + 1500 + 1500 + 1500) / 4.0);
}

TEST(ShareFit, FragmentationKeepsTheDeviceWholeThatWholeRequestsNeed) {
  ShareFit fit = fit_of(ShareRule::kFragmentation, {part(0, 1000), part(0, 500)},
                        {{.devices = {1000, 1000}}, {.devices = {500, 1000}}});
  const std::optional<ShareChoice> choice = fit.choose(part(0, 500));
  EXPECT_EQ(choice->node, ShareNodeId(1));
  EXPECT_EQ(choice->devices, 0b01);
}

TEST(ShareFit, WorthIsZeroWithoutDevicesAndFullWhereTheHostIsAmple) {
  const TypicalRequests typical = TypicalRequests::make(std::vector{part(1000, 1000)});
  EXPECT_EQ(node_worth(node_of({.cpu = 4000}), typical), 0);
  EXPECT_DOUBLE_EQ(node_worth(node_of({.cpu = 4000, .devices = {1000, 1000}}), typical), 3);
}

TEST(ShareFit, WorthFallsToTwoThirdsAsTheHostRunsOutOfCpuOrMemory) {
  const TypicalRequests typical = TypicalRequests::make(std::vector{part(1000, 1000)});
  EXPECT_DOUBLE_EQ(node_worth(node_of({.cpu = 1000, .devices = {1000, 1000}}), typical), 2.5);
  EXPECT_DOUBLE_EQ(node_worth(node_of({.cpu = 0, .devices = {1000, 1000}}), typical), 2);
  EXPECT_DOUBLE_EQ(
      node_worth(node_of({.cpu = 4000, .memory = 1, .devices = {1000, 1000}}), typical), 2.5);
}

TEST(ShareFit, WorthPutsHungryRequestsWhereCpuIsPlentyAndFrugalOnesWhereItIsScarce) {
  const std::vector<ShareRequest> typical = {part(2000, 1000), part(14'000, 1000),
                                             part(8000, 1000)};
  const std::vector<Free> nodes = {{.cpu = 16'000, .devices = {1000, 1000}},
                                   {.cpu = 64'000, .devices = {1000, 1000}}};
  ShareFit fit = fit_of(ShareRule::kWorth, typical, nodes);
  EXPECT_EQ(fit.choose(typical[0])->node, ShareNodeId(0));
  EXPECT_EQ(fit.choose(typical[1])->node, ShareNodeId(1));
  EXPECT_EQ(fit.choose({.cpu = 12'000})->node, ShareNodeId(1));
}

TEST(ShareFit, WorthPutsAPartWhereItLeavesNothingThatOthersAskFor) {
  std::vector<ShareRequest> typical(10, part(1, 650));
  typical.insert(typical.end(), 20, part(1, 320));
  typical.push_back(part(1, 20));
  ShareFit fit = fit_of(ShareRule::kWorth, typical, {{.cpu = 100, .devices = {350, 330}}});
  EXPECT_EQ(fit.choose(part(1, 320))->devices, 0b10);
  EXPECT_EQ(fit.choose(part(1, 20))->devices, 0b01);
}

TEST(ShareFit, WorthFillsANodeInUseBeforeItOpensAnEmptyOne) {
  const std::vector<ShareRequest> typical = {part(1, 1000)};
  ShareFit fit = fit_of(ShareRule::kWorth, typical,
                        {{.cpu = 100, .devices = {1000, 1000}}, {.cpu = 99, .devices = {0, 1000}}});
  EXPECT_EQ(fit.choose(typical[0])->node, ShareNodeId(1));
}

TEST(ShareFit, WhatIsGivenBackCanBeChosenAgain) {
  const ShareRequest request = part(1000, 700);
  ShareFit fit = fit_of(ShareRule::kWorth, {request}, {{.cpu = 4000, .devices = {1000}}});
  const std::optional<ShareChoice> first = fit.choose(request);
  fit.take(request, *first);
  EXPECT_FALSE(fit.choose(request));
  fit.give_back(request, *first);
  EXPECT_EQ(fit.choose(request)->devices, first->devices);
}

/// A random request of a small world, so that kinds repeat and nodes fill up.
ShareRequest random_request(Rng& rng) {
  ShareRequest request{.cpu = 1000 * static_cast<std::int64_t>(rng.below(4)), .memory = 10};
  if (rng.below(6) == 0) return request;
  request.devices = rng.below(5) == 0 ? 2 : 1;
  request.thousandths =
      rng.below(2) == 0 ? kDeviceThousandths : 100 * (1 + static_cast<int>(rng.below(9)));
  if (rng.below(4) == 0) request.types = 0b10;
  return request;
}

std::vector<ShareNode> random_nodes(Rng& rng) {
  std::vector<ShareNode> nodes;
  for (int i = 0; i < 12; ++i) {
    nodes.push_back(
        node_of({.cpu = rng.below(2) == 0 ? 8000 : 24'000,
                 .memory = 200,
                 .devices = std::vector<int>(2 + 2 * rng.below(2), kDeviceThousandths)}));
    nodes.back().type = static_cast<int>(rng.below(2));
  }
  return nodes;
}

TEST(ShareFit, ARememberedScoreNeverChangesAChoice) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Rng rng(seed);
    std::vector<ShareRequest> typical;
    typical.reserve(40);
    for (int i = 0; i < 40; ++i) typical.push_back(random_request(rng));
    const ShareRule rule = kRules[seed % 3];
    const TypicalRequests distribution = TypicalRequests::make(typical);
    ShareFit fit(rule, distribution, random_nodes(rng));
    std::vector<std::pair<ShareRequest, ShareChoice>> running;
    for (int step = 0; step < 120; ++step) {
      const ShareRequest request = random_request(rng);
      ShareFit fresh(rule, distribution, {fit.nodes().begin(), fit.nodes().end()});
      const std::optional<ShareChoice> choice = fit.choose(request);
      const std::optional<ShareChoice> expected = fresh.choose(request);
      ASSERT_EQ(choice.has_value(), expected.has_value()) << "seed " << seed << " step " << step;
      if (choice) {
        ASSERT_EQ(choice->node, expected->node) << "seed " << seed << " step " << step;
        ASSERT_EQ(choice->devices, expected->devices) << "seed " << seed << " step " << step;
        fit.take(request, *choice);
        running.emplace_back(request, *choice);
      }
      if (!running.empty() && rng.below(4) == 0) {
        std::swap(running[rng.below(running.size())], running.back());
        fit.give_back(running.back().first, running.back().second);
        running.pop_back();
      }
    }
  }
}

TEST(ShareFit, TheChoiceIsTheBestOfAllNodesThatFit) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Rng rng(seed);
    std::vector<ShareRequest> typical;
    typical.reserve(40);
    for (int i = 0; i < 40; ++i) typical.push_back(random_request(rng));
    const ShareRule rule = kRules[seed % 3];
    const TypicalRequests distribution = TypicalRequests::make(typical);
    ShareFit fit(rule, distribution, random_nodes(rng));
    for (int step = 0; step < 60; ++step) {
      const ShareRequest request = random_request(rng);
      const std::optional<ShareChoice> choice = fit.choose(request);
      if (!choice) continue;
      const auto value = [&](std::size_t i) {
        return share_score(rule, fit.nodes()[i], request, distribution).value;
      };
      for (std::size_t i = 0; i < fit.nodes().size(); ++i) {
        if (!fits(fit.nodes()[i], request)) continue;
        ASSERT_LE(value(i), value(choice->node.value())) << "seed " << seed << " step " << step;
      }
      fit.take(request, *choice);
    }
  }
}

TEST(ShareFit, ForgettingTheOldestKindsChangesNothing) {
  ShareFit fit = fit_of(ShareRule::kBestFit, {}, std::vector<Free>(2, {.cpu = 9000}));
  for (int cpu = 1; cpu <= 1100; ++cpu) {
    ASSERT_EQ(fit.choose({.cpu = cpu})->node, ShareNodeId(0));
  }
  fit.take({.cpu = 8999}, {.node = ShareNodeId(0)});
  EXPECT_EQ(fit.choose({.cpu = 1})->node, ShareNodeId(0));
  EXPECT_EQ(fit.choose({.cpu = 2})->node, ShareNodeId(1));
}

}  // namespace
}  // namespace orrery
