// serving/scaling/scale_plan_test.cpp - orders in single cases, and properties over random runs.
#include "serving/scaling/scale_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

Instant at(double seconds) { return Instant() + Duration::from_seconds(10'000 + seconds); }

/// A replica serves 100 requests of a prompt token and an output token a second.
ReplicaCapacity hundred_a_second() {
  return {.prompt_token_s = 0.004, .output_token_s = 0.004, .busy = 0.8, .batch = 8};
}

ScaleQuestion question(std::uint32_t present, double requests_s) {
  ScaleQuestion asked{.now = at(0), .terms = {.min = 1, .max = 8}};
  asked.traffic.shape = {1, 1};
  asked.variants.push_back({.present = present, .most = 100, .capacity = hundred_a_second()});
  asked.traffic.demand = asked.traffic.demand_in = {requests_s, requests_s};
  asked.cold_start = Duration::seconds(30);
  asked.traffic.last_request = at(0);
  return asked;
}

std::uint32_t total(const ScaleQuestion& asked) { return plan_scale(asked).total; }

TEST(ScalePlan, OrdersTheLeastNumberThatServesTheDemand) {
  EXPECT_EQ(total(question(1, 90)), 1u);
  EXPECT_EQ(total(question(1, 101)), 2u);
  EXPECT_EQ(total(question(1, 350)), 4u);
  EXPECT_EQ(total(question(1, 5000)), 8u);
  const ScaleAnswer answer = plan_scale(question(1, 350));
  EXPECT_EQ(answer.why,
            "350 prompt and 350 output tokens/s are expected in 35 s (95 % quantile); one replica "
            "serves 100 and 100, so 4 are needed");
  EXPECT_NE(plan_scale(question(8, 5000)).why.find("max (8)"), std::string::npos);
}

TEST(ScalePlan, GivesUpOneReplicaWhereTheOthersServeTheDemand) {
  EXPECT_EQ(total(question(4, 90)), 3u);
  EXPECT_EQ(total(question(4, 299)), 3u);
  EXPECT_EQ(total(question(4, 301)), 4u);
  ScaleQuestion rising = question(4, 200);
  rising.traffic.demand_in = {310, 310};
  EXPECT_EQ(total(rising), 4u);
  EXPECT_EQ(total(question(1, 0)), 1u);
}

TEST(ScalePlan, DoesNotReverseAnOrderWithinAMinute) {
  ScaleQuestion asked = question(4, 90);
  asked.last = PastScaleOrder{at(-59), ScaleDirection::kOut};
  EXPECT_EQ(total(asked), 4u);
  asked.last->at = at(-60);
  EXPECT_EQ(total(asked), 3u);
  asked.cold_start = Duration::seconds(300);
  EXPECT_EQ(total(asked), 4u);
  asked = question(2, 350);
  asked.last = PastScaleOrder{at(-59), ScaleDirection::kIn};
  EXPECT_EQ(total(asked), 2u);
  asked.last = PastScaleOrder{at(-1), ScaleDirection::kOut};
  EXPECT_EQ(total(asked), 4u);
}

TEST(ScalePlan, GoesToZeroWhenIdleAndBackWithTheFirstRequest) {
  ScaleQuestion asked = question(1, 0);
  asked.terms = {.min = 0, .max = 4, .idle = Duration::seconds(600)};
  asked.traffic.last_request = at(-599);
  EXPECT_EQ(total(asked), 1u);
  asked.traffic.last_request = at(-600);
  EXPECT_EQ(total(asked), 0u);
  asked.traffic.running = 1;
  EXPECT_EQ(total(asked), 1u);
  asked = question(0, 20);
  asked.terms.min = 0;
  EXPECT_EQ(total(asked), 0u);
  asked.traffic.waiting = 1;
  asked.last = PastScaleOrder{at(-1), ScaleDirection::kIn};
  EXPECT_EQ(total(asked), 1u);
  asked.variants[0].capacity = {};
  EXPECT_EQ(total(asked), 1u);
}

TEST(ScalePlan, TakesTheMachineThatCostsLeast) {
  ScaleQuestion asked = question(1, 250);
  asked.variants[0].name = "a";
  asked.variants[0].usd_s = 2;
  asked.variants.push_back(
      {.name = "b", .present = 0, .most = 1, .capacity = hundred_a_second(), .usd_s = 1});
  EXPECT_EQ(plan_scale(asked).replicas, (std::vector<std::uint32_t>{2, 1}));
  asked = question(3, 250);
  asked.variants[0].usd_s = 1;
  asked.variants.push_back(
      {.name = "b", .present = 1, .most = 1, .capacity = hundred_a_second(), .usd_s = 2});
  EXPECT_EQ(plan_scale(asked).replicas, (std::vector<std::uint32_t>{3, 0}));
}

TEST(ScalePlan, WhatWaitsIsDemand) {
  const TokenDemand demand = with_waiting({100, 10}, 20, {50, 5}, Duration::seconds(10));
  EXPECT_DOUBLE_EQ(demand.prompt_s, 200);
  EXPECT_DOUBLE_EQ(demand.output_s, 20);
}

ScaleQuestion random_question(Rng& rng) {
  ScaleQuestion asked = question(0, 0);
  asked.terms.min = static_cast<std::uint32_t>(rng.below(4));
  asked.terms.max = std::max(1U, asked.terms.min + static_cast<std::uint32_t>(rng.below(8)));
  asked.variants.resize(1 + rng.below(3), asked.variants[0]);
  for (ScaleVariant& each : asked.variants) {
    each.present = static_cast<std::uint32_t>(rng.below(5));
    each.most = 20;
    each.usd_s = 0.1 + rng.uniform();
    each.capacity.busy = 0.2 + 0.7 * rng.uniform();
  }
  asked.traffic.waiting = static_cast<std::uint32_t>(rng.below(3));
  asked.traffic.running = static_cast<std::uint32_t>(rng.below(2));
  asked.traffic.last_request = at(-1200 * rng.uniform());
  if (rng.below(2) == 0) {
    const bool more = rng.below(2) == 0;
    asked.last =
        PastScaleOrder{at(-120 * rng.uniform()), more ? ScaleDirection::kOut : ScaleDirection::kIn};
  }
  return asked;
}

double cost(const ScaleQuestion& asked, const ScaleAnswer& answer) {
  double sum = 0;
  for (std::size_t i = 0; i < answer.replicas.size(); ++i) {
    sum += answer.replicas[i] * asked.variants[i].usd_s;
  }
  return sum;
}

TEST(ScalePlan, MoreDemandNeverOrdersLessAndTheLimitsHold) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed);
    ScaleQuestion asked = random_question(rng);
    // Beyond what max allows the mix with the most capacity is taken, whatever it costs.
    const bool one = asked.variants.size() == 1;
    if (!one) asked.terms.max = 60;
    double before = 0;
    for (double demand = 0; demand < 900; demand += 1 + 60 * rng.uniform()) {
      asked.traffic.demand = asked.traffic.demand_in = {demand, demand};
      const ScaleAnswer answer = plan_scale(asked);
      ASSERT_LE(answer.total, asked.terms.max) << "seed " << seed;
      ASSERT_GE(answer.total, asked.terms.min) << "seed " << seed;
      ASSERT_FALSE(answer.why.empty()) << "seed " << seed;
      const double now = one ? answer.total : cost(asked, answer);
      ASSERT_GE(now, before - 1e-6) << "seed " << seed << ": " << answer.why;
      before = now;
      const ScaleAnswer again = plan_scale(asked);
      ASSERT_EQ(again.replicas, answer.replicas) << "seed " << seed;
      ASSERT_EQ(again.why, answer.why) << "seed " << seed;
    }
  }
}

TEST(ScalePlan, NoOrderOfARunIsReversedWithinAMinute) {
  int orders = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Rng rng(seed);
    ScaleQuestion asked = question(1, 0);
    asked.terms = {
        .min = static_cast<std::uint32_t>(rng.below(2)), .max = 12, .idle = Duration::seconds(120)};
    double demand = 100;
    for (int t = 0; t < 1000; t += 5) {
      asked.now = at(t);
      demand =
          rng.below(20) == 0 ? 0 : std::clamp(demand * (0.5 + 1.1 * rng.uniform()), 0.0, 1500.0);
      if (demand == 0 && rng.below(3) == 0) demand = 300;
      asked.traffic.waiting = demand > 0 ? 1 : 0;
      if (demand > 0) asked.traffic.last_request = asked.now;
      asked.traffic.demand = asked.traffic.demand_in = {demand, demand};
      const ScaleAnswer answer = plan_scale(asked);
      std::uint32_t& present = asked.variants[0].present;
      if (answer.total == present) continue;
      const ScaleDirection to = answer.total > present ? ScaleDirection::kOut : ScaleDirection::kIn;
      if (asked.last && asked.last->direction != to && present > 0) {
        ASSERT_GE(asked.now - asked.last->at, Duration::seconds(60)) << "seed " << seed;
      }
      if (to == ScaleDirection::kIn) {
        ASSERT_EQ(answer.total + 1, present) << "seed " << seed;
      }
      asked.last = PastScaleOrder{asked.now, to};
      present = answer.total;
      ++orders;
    }
  }
  EXPECT_GT(orders, 600);
}

}  // namespace
}  // namespace orrery
