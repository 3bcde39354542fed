// serving/routing/shared_replicas_test.cpp - choices where other gateways use the same replicas.
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "serving/routing/router.hpp"

namespace orrery {
namespace {

Instant at(double seconds) { return Instant() + Duration::from_seconds(1000 + seconds); }

/// Replicas with as many slots, all with the pace of 1,000 prompt tokens and 100 steps a second.
RouteTable table_of(std::uint64_t replicas, std::uint32_t slots) {
  RouteTable table;
  table.services.push_back({.id = 1, .name = "chat", .model = "m"});
  for (std::uint64_t job = 1; job <= replicas; ++job) {
    table.services[0].replicas.push_back(
        {.job = job, .attempt = 1, .endpoint = "h:1", .slots = slots, .pace = {1000, 0.01, 0.02}});
  }
  return table;
}

ReplicaCharges charges(std::uint64_t job, std::uint32_t requests, std::uint64_t prompt_tokens = 0) {
  return {{job, 1},
          {.in_flight = requests,
           .tokens = prompt_tokens,
           .prompt_tokens = prompt_tokens,
           .prompts_until = at(static_cast<double>(prompt_tokens) / 1000)}};
}

RouteQuery query() { return {.prompt_tokens = 100, .output_tokens = 10, .now = at(0)}; }

std::uint64_t chosen(const RouterState& state) {
  const RouteDecision decision = choose(state, query());
  return decision.outcome == RouteOutcome::kReplica ? state.replica(decision.slot).key.job : 0;
}

TEST(SharedReplicas, WhatOthersHaveChargedCountsAsOwn) {
  RouterState alone({});
  alone.set_table(table_of(1, 8));
  RouterState shared = alone;
  for (int i = 0; i < 3; ++i) (void)alone.charge(0, {.work = {500, 0}}, {}, at(0));
  shared.set_others(std::vector{charges(1, 3, 1500)}, 1);
  const RouteCandidate own = choose(alone, query()).candidates[0];
  const RouteCandidate others = choose(shared, query()).candidates[0];
  EXPECT_EQ(others.in_flight, 3u);
  EXPECT_EQ(others.others_in_flight, 3u);
  EXPECT_EQ(own.others_in_flight, 0u);
  EXPECT_EQ(others.tokens, own.tokens);
  EXPECT_DOUBLE_EQ(others.expected.ttft_s, own.expected.ttft_s);
  EXPECT_GT(others.expected.ttft_s, 1.5) << "behind their prompts";
  EXPECT_TRUE(shared.own_charges().empty());
  ASSERT_EQ(alone.own_charges().size(), 1u);
  EXPECT_EQ(alone.own_charges()[0].work.prompt_tokens, 1500u);
}

TEST(SharedReplicas, TheNextTellingTakesThePlaceOfTheLast) {
  RouterState state({});
  state.set_table(table_of(2, 8));
  state.set_others(std::vector{charges(1, 3, 4000), charges(77, 1)}, 1);
  EXPECT_EQ(chosen(state), 2u);
  state.set_others(std::vector{charges(2, 3, 4000)}, 1);
  EXPECT_EQ(chosen(state), 1u);
  state.set_others({}, 0);
  EXPECT_EQ(state.replica(1).work.others.in_flight, 0u);
  EXPECT_EQ(state.other_gateways(), 0u);
  EXPECT_EQ(chosen(state), 1u) << "alone, the lowest job of equals";
}

TEST(SharedReplicas, APromptIsComputedBehindThoseOfOthers) {
  RouterState state({});
  state.set_table(table_of(1, 8));
  state.set_others(std::vector{charges(1, 1, 2000)}, 1);
  const RouteCharge charge = state.charge(0, {.work = {500, 0}}, {}, at(0));
  EXPECT_TRUE(charge.behind_prompts);
  EXPECT_EQ(state.replica(0).work.own.prompts_until, at(2.5));
}

TEST(SharedReplicas, AGatewayGetsItsPartOfReplicasThatOthersFill) {
  RouterState state({});
  state.set_table(table_of(1, 6));  // eight requests fill it
  state.set_others(std::vector{charges(1, 20)}, 3);
  std::vector<RouteCharge> own;
  while (chosen(state) != 0) {
    own.push_back(state.charge(0, {}, {}, at(0)));
    ASSERT_LE(own.size(), 20u);
  }
  EXPECT_EQ(own.size(), 2u) << "four gateways, eight requests";
  EXPECT_EQ(choose(state, query()).outcome, RouteOutcome::kWait);
  state.credit(own.back(), {}, at(0));
  EXPECT_EQ(chosen(state), 1u);
  state.set_others(std::vector{charges(1, 3)}, 3);
  int more = 0;
  for (; chosen(state) != 0; ++more) (void)state.charge(0, {}, {}, at(0));
  EXPECT_EQ(more, 4) << "what others leave free is its own: 1 + 3 + 4";
}

TEST(SharedReplicas, GatewaysDrawDifferentlyAmongReplicasThatAreAlike) {
  constexpr int kRequests = 400;
  std::map<std::uint64_t, std::vector<std::uint64_t>> drawn;
  for (const std::uint64_t seed : {11U, 12U}) {
    RouterState state({.seed = seed});
    state.set_table(table_of(4, 8));
    state.set_others({}, 1);
    for (int i = 0; i < kRequests; ++i) {
      drawn[seed].push_back(chosen(state));
      const RouteCharge charge = state.charge(0, {}, {}, at(0));
      state.credit(charge, {}, at(0));
    }
  }
  int alike = 0;
  std::map<std::uint64_t, int> of_first;
  for (int i = 0; i < kRequests; ++i) {
    const auto turn = static_cast<std::size_t>(i);
    alike += drawn[11][turn] == drawn[12][turn] ? 1 : 0;
    ++of_first[drawn[11][turn]];
  }
  EXPECT_NEAR(alike, kRequests / 4, 40);
  for (std::uint64_t job = 1; job <= 4; ++job) EXPECT_NEAR(of_first[job], kRequests / 4, 40) << job;
}

TEST(SharedReplicas, AReplicaThatIsClearlyWorseIsNotDrawn) {
  RouterState state({.seed = 5});
  state.set_table(table_of(3, 8));
  state.set_others(std::vector{charges(2, 4, 3000)}, 1);
  for (int i = 0; i < 200; ++i) {
    ASSERT_NE(chosen(state), 2u);
    const RouteCharge charge = state.charge(0, {}, {}, at(0));
    state.credit(charge, {}, at(0));
  }
}

}  // namespace
}  // namespace orrery
