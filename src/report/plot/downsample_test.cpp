#include "report/plot/downsample.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<double> noise(std::size_t samples, Rng& rng) {
  std::vector<double> values(samples);
  for (double& value : values) value = rng.uniform() < 0.02 ? kNan : rng.uniform() - 0.5;
  return values;
}

double least_of(const std::vector<double>& values) {
  double least = kNan;
  for (const double value : values) least = std::fmin(least, value);
  return least;
}

double most_of(const std::vector<double>& values) {
  double most = kNan;
  for (const double value : values) most = std::fmax(most, value);
  return most;
}

std::vector<double> picked(const std::vector<double>& values,
                           const std::vector<std::size_t>& kept) {
  std::vector<double> few;
  for (const std::size_t i : kept) few.push_back(values[i]);
  return few;
}

TEST(Downsample, KeepsTheExtremesOfEverySeriesWithinTheLimit) {
  Rng rng(3);
  for (const std::size_t samples : {5u, 99u, 100u, 101u, 1000u, 8760u}) {
    const std::vector<double> a = noise(samples, rng);
    const std::vector<double> b = noise(samples, rng);
    const std::vector<std::span<const double>> series = {a, b};
    const std::vector<std::size_t> kept = kept_samples(series, 100);
    EXPECT_LE(kept.size(), 100u);
    EXPECT_TRUE(std::ranges::is_sorted(kept));
    EXPECT_EQ(kept.front(), 0u);
    EXPECT_EQ(kept.back(), samples - 1);
    for (const auto& values : {a, b}) {
      EXPECT_EQ(least_of(picked(values, kept)), least_of(values));
      EXPECT_EQ(most_of(picked(values, kept)), most_of(values));
    }
  }
}

TEST(Downsample, KeepsAllThatFitAndAGapThatFillsARun) {
  const std::vector<double> few = {1, 2, 3};
  EXPECT_EQ(kept_samples(std::vector<std::span<const double>>{few}, 4),
            (std::vector<std::size_t>{0, 1, 2}));
  std::vector<double> gap(1000, 1.0);
  std::fill(gap.begin() + 400, gap.begin() + 600, kNan);
  const auto kept = kept_samples(std::vector<std::span<const double>>{gap}, 50);
  EXPECT_TRUE(std::ranges::any_of(kept, [&](std::size_t i) { return std::isnan(gap[i]); }));
  EXPECT_TRUE(kept_samples({}, 50).empty());
}

TEST(Downsample, AnEnvelopeHoldsEveryValueAndTheMean) {
  Rng rng(4);
  const std::vector<double> y = noise(1003, rng);
  std::vector<double> x;
  for (std::size_t i = 0; i < y.size(); ++i) x.push_back(static_cast<double>(i));
  const Envelope envelope = envelope_of(x, y, 10);
  ASSERT_EQ(envelope.mean.size(), 10u);
  for (std::size_t run = 0; run < 10; ++run) {
    EXPECT_LE(envelope.low[run], envelope.mean[run]);
    EXPECT_LE(envelope.mean[run], envelope.high[run]);
  }
  EXPECT_EQ(least_of(envelope.low), least_of(y));
  EXPECT_EQ(most_of(envelope.high), most_of(y));
  const Envelope whole = envelope_of(std::vector<double>{0, 2}, std::vector<double>{1, 5}, 1);
  EXPECT_EQ(whole.x.front(), 1);
  EXPECT_EQ(whole.mean.front(), 3);
  EXPECT_TRUE(std::isnan(
      envelope_of(std::vector<double>{0, 1}, std::vector<double>{kNan, 1}, 2).mean.front()));
}

}  // namespace
}  // namespace orrery
