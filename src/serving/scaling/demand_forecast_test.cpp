// serving/scaling/demand_forecast_test.cpp - how often demand exceeds its forecast, and what a
// season, a gap and a jump do to it.
#include "serving/scaling/demand_forecast.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <limits>
#include <numeric>
#include <vector>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

constexpr Duration kTick = DemandForecast::kTick;

Instant tick(std::int64_t number) { return Instant() + kTick * number; }

/// A load that wanders and jumps.
double load(std::int64_t at, Rng& rng) {
  const double wave = 1000 + 400 * std::sin(static_cast<double>(at) / 90);
  return wave * (0.8 + 0.4 * rng.uniform());
}

TEST(DemandForecast, ExceedsItsQuantileAsOftenAsItSays) {
  for (const double share : {0.8, 0.95}) {
    int exceeded = 0;
    int asked = 0;
    for (std::uint64_t seed = 1; seed <= 2; ++seed) {
      Rng rng(seed);
      DemandForecast forecast;
      constexpr int kAhead = 12;
      std::vector<double> expected(kAhead, std::numeric_limits<double>::infinity());
      std::deque<double> half_minute;
      for (std::int64_t t = 1; t <= 1200; ++t) {
        const double now = load(t, rng);
        half_minute.push_back(now);
        if (half_minute.size() > 6) half_minute.pop_front();
        const double mean = std::accumulate(half_minute.begin(), half_minute.end(), 0.0) / 6;
        if (t > 300) {
          ++asked;
          exceeded += mean > expected[static_cast<std::size_t>(t % kAhead)] ? 1 : 0;
        }
        ASSERT_TRUE(forecast.observe(tick(t), {now, now / 4}));
        expected[static_cast<std::size_t>(t % kAhead)] =
            forecast.quantile(tick(t + kAhead), share).prompt_s;
      }
    }
    EXPECT_NEAR(static_cast<double>(exceeded) / asked, 1 - share, 0.03) << share;
  }
}

TEST(DemandForecast, FollowsAJumpWithinTwoTicks) {
  DemandForecast forecast;
  for (std::int64_t t = 1; t <= 40; ++t) ASSERT_TRUE(forecast.observe(tick(t), {100, 10}));
  EXPECT_LT(forecast.quantile(tick(52), 0.95).prompt_s, 130);
  ASSERT_TRUE(forecast.observe(tick(41), {300, 30}));
  ASSERT_TRUE(forecast.observe(tick(42), {300, 30}));
  EXPECT_GT(forecast.quantile(tick(54), 0.95).prompt_s, 270);
}

TEST(DemandForecast, GapsWidenTheInterval) {
  Rng rng(7);
  DemandForecast forecast;
  for (std::int64_t t = 1; t <= 200; ++t) {
    ASSERT_TRUE(forecast.observe(tick(t), {load(0, rng), 0}));
  }
  const auto width = [&](std::int64_t ahead) {
    return forecast.quantile(tick(200 + ahead), 0.95).prompt_s -
           forecast.quantile(tick(200 + ahead), 0.5).prompt_s;
  };
  EXPECT_GT(width(2000), 2 * width(2));
  const double before = width(500);
  // What comes after a gap of missing observations is a forecast as any other.
  ASSERT_TRUE(forecast.observe(tick(700), {1000, 0}));
  EXPECT_GT(forecast.quantile(tick(701), 0.95).prompt_s, 500);
  EXPECT_GT(before, 0);
}

TEST(DemandForecast, ZeroIsANumberAndNoNumberIsRefused) {
  DemandForecast forecast;
  EXPECT_EQ(forecast.quantile(tick(1), 0.95), TokenDemand{});
  for (std::int64_t t = 1; t <= 60; ++t) ASSERT_TRUE(forecast.observe(tick(t), {}));
  EXPECT_EQ(forecast.quantile(tick(80), 0.95), TokenDemand{});
  EXPECT_FALSE(forecast.observe(tick(61), {std::nan(""), 0}));
  EXPECT_FALSE(forecast.observe(tick(61), {0, -1}));
  EXPECT_FALSE(forecast.observe(tick(61), {0, std::numeric_limits<double>::infinity()}));
  EXPECT_FALSE(forecast.observe(tick(60), {1, 1}));
  EXPECT_TRUE(forecast.observe(tick(61), {1, 1}));
}

TEST(DemandForecast, LearnsADaysSeason) {
  DemandForecast forecast;
  const auto at_hour = [](std::int64_t t) {
    const std::int64_t second = 5 * t % 86'400;
    return second < 8 * 3600   ? 10.0
           : second < 9 * 3600 ? 10 + 0.1 * static_cast<double>(second - 28'800)
                               : 370.0;
  };
  const std::int64_t eight = (3 * 86'400 + 8 * 3600) / 5;
  for (std::int64_t t = 1; t <= eight; ++t) ASSERT_TRUE(forecast.observe(tick(t), {at_hour(t), 0}));
  // At eight, the morning's rise of the days before is expected: 60 tokens/s in ten minutes.
  EXPECT_NEAR(forecast.quantile(tick(eight + 120), 0.5).prompt_s, 70, 20);
}

TEST(DemandForecast, QuantilesGrowWithTheShareAndScaleWithTheDemand) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Rng rng(seed);
    DemandForecast one;
    DemandForecast eight;
    std::int64_t t = 0;
    const std::uint64_t ticks = 1 + rng.below(200);
    for (std::uint64_t i = 0; i < ticks; ++i) {
      t += 1 + static_cast<std::int64_t>(rng.below(10) == 0 ? rng.below(50) : 0);
      const double now = load(t, rng) * (rng.below(20) == 0 ? 0 : 1);
      ASSERT_TRUE(one.observe(tick(t), {now, 0}));
      ASSERT_TRUE(eight.observe(tick(t), {8 * now, now}));
    }
    const auto ahead = static_cast<std::int64_t>(1 + rng.below(100));
    double before = 0;
    for (const double share : {0.5, 0.6, 0.8, 0.9, 0.99}) {
      const double now = one.quantile(tick(t + ahead), share).prompt_s;
      ASSERT_GE(now, before) << "seed " << seed;
      const TokenDemand scaled = eight.quantile(tick(t + ahead), share);
      ASSERT_NEAR(scaled.prompt_s, 8 * now, 1e-6) << "seed " << seed;
      ASSERT_NEAR(scaled.output_s, now, 1e-6) << "seed " << seed;
      before = now;
    }
  }
}

}  // namespace
}  // namespace orrery
