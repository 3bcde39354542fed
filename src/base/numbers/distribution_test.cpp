// base/numbers/distribution_test.cpp - moments, shapes and first values of every distribution.
//
// Tolerances are five standard errors of the estimate; the seeds are fixed, so a pass is a pass.
#include "base/numbers/distribution.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

namespace orrery {
namespace {

constexpr std::size_t kSamples = 200'000;

template <class Distribution>
std::vector<double> samples_of(const Distribution& distribution) {
  Rng rng = Rng::stream(1, "distribution_test");
  std::vector<double> samples(kSamples);
  for (double& sample : samples) sample = static_cast<double>(distribution.sample(rng));
  return samples;
}

struct Moments {
  double mean;
  double variance;
  double fourth;  // central
};

/// Central moments from the raw ones, E X to E X^4.
Moments central(const std::array<double, 4>& raw) {
  const double m = raw[0];
  return {m, raw[1] - m * m,
          raw[3] - 4.0 * m * raw[2] + 6.0 * m * m * raw[1] - 3.0 * m * m * m * m};
}

/// The mean has variance sigma^2 / n, the sample variance (mu4 - sigma^4) / n.
void expect_moments(const std::vector<double>& samples, const Moments& theory) {
  const double n = static_cast<double>(samples.size());
  double mean = 0.0;
  for (const double x : samples) mean += x / n;
  double variance = 0.0;
  for (const double x : samples) variance += (x - mean) * (x - mean) / n;
  EXPECT_NEAR(mean, theory.mean, 5.0 * std::sqrt(theory.variance / n));
  EXPECT_NEAR(variance, theory.variance,
              5.0 * std::sqrt((theory.fourth - theory.variance * theory.variance) / n));
}

/// Kolmogorov-Smirnov: the largest distance of the empirical distribution from `cumulative` stays
/// below 1.95 / sqrt(n), which one sound generator in a thousand would exceed.
template <class Cumulative>
void expect_shape(std::vector<double> samples, Cumulative cumulative) {
  std::sort(samples.begin(), samples.end());
  const double n = static_cast<double>(samples.size());
  double distance = 0.0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double p = cumulative(samples[i]);
    const double rank = static_cast<double>(i);
    distance = std::max({distance, p - rank / n, (rank + 1.0) / n - p});
  }
  EXPECT_LT(distance * std::sqrt(n), 1.95);
}

double normal_cumulative(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

TEST(Uniform, HasItsMomentsAndShapeWithinItsBounds) {
  const Uniform uniform{.low = -2.0, .high = 6.0};
  const std::vector<double> samples = samples_of(uniform);
  expect_moments(samples, {2.0, 64.0 / 12.0, 4096.0 / 80.0});
  expect_shape(samples, [](double x) { return (x + 2.0) / 8.0; });
  EXPECT_GE(*std::min_element(samples.begin(), samples.end()), -2.0);
  EXPECT_LE(*std::max_element(samples.begin(), samples.end()), 6.0);
}

TEST(Uniform, OfAnEmptyRangeIsItsOnlyPoint) {
  Rng rng(1);
  EXPECT_EQ((Uniform{.low = 3.5, .high = 3.5}.sample(rng)), 3.5);
}

TEST(Exponential, HasItsMomentsAndShape) {
  const std::vector<double> samples = samples_of(Exponential{.rate = 0.25});
  expect_moments(samples, {4.0, 16.0, 9.0 * 256.0});
  expect_shape(samples, [](double x) { return 1.0 - std::exp(-0.25 * x); });
}

TEST(Weibull, HasItsMomentsAndShapeWithFallingAndRisingFailureRates) {
  for (const double shape : {0.7, 1.0, 1.5, 3.0}) {
    SCOPED_TRACE(shape);
    std::array<double, 4> raw{};
    for (std::size_t k = 0; k < raw.size(); ++k) {
      const double power = static_cast<double>(k + 1);
      raw[k] = std::pow(2.0, power) * std::tgamma(1.0 + power / shape);
    }
    const std::vector<double> samples = samples_of(Weibull{.shape = shape, .scale = 2.0});
    expect_moments(samples, central(raw));
    expect_shape(samples, [shape](double x) { return 1.0 - std::exp(-std::pow(x / 2.0, shape)); });
  }
}

TEST(Weibull, OfShapeOneIsExponential) {
  Rng a(9);
  Rng b(9);
  const Weibull weibull{.shape = 1.0, .scale = 4.0};
  const Exponential exponential{.rate = 0.25};
  for (int i = 0; i < 1000; ++i) {
    const double expected = exponential.sample(b);
    EXPECT_NEAR(weibull.sample(a), expected, 1e-14 * expected);
  }
}

TEST(Normal, HasItsMomentsAndShape) {
  const std::vector<double> samples = samples_of(Normal{.mean = -3.0, .deviation = 2.0});
  expect_moments(samples, {-3.0, 4.0, 48.0});
  expect_shape(samples, [](double x) { return normal_cumulative((x + 3.0) / 2.0); });
}

TEST(Normal, SuccessiveSamplesAreUncorrelated) {
  const std::vector<double> samples = samples_of(Normal{});
  double sum = 0.0;
  for (std::size_t i = 1; i < samples.size(); ++i) sum += samples[i - 1] * samples[i];
  EXPECT_LT(std::abs(sum), 5.0 * std::sqrt(static_cast<double>(kSamples)));
}

TEST(Normal, WithoutDeviationIsItsMean) {
  Rng rng(1);
  EXPECT_EQ((Normal{.mean = 7.0, .deviation = 0.0}.sample(rng)), 7.0);
}

TEST(Lognormal, HasItsMomentsAndShape) {
  const double mu = 1.0;
  const double sigma = 0.5;
  std::array<double, 4> raw{};
  for (std::size_t k = 0; k < raw.size(); ++k) {
    const double power = static_cast<double>(k + 1);
    raw[k] = std::exp(power * mu + power * power * sigma * sigma / 2.0);
  }
  const std::vector<double> samples = samples_of(Lognormal{.mu = mu, .sigma = sigma});
  expect_moments(samples, central(raw));
  expect_shape(samples, [=](double x) { return normal_cumulative((std::log(x) - mu) / sigma); });
}

/// Probabilities of the ranks 1..n, the first at index 0.
std::vector<double> zipf_probabilities(std::size_t n, double exponent) {
  std::vector<double> probabilities(n);
  double total = 0.0;
  for (std::size_t i = n; i-- > 0;) {
    probabilities[i] = std::pow(static_cast<double>(i + 1), -exponent);
    total += probabilities[i];
  }
  for (double& probability : probabilities) probability /= total;
  return probabilities;
}

// Pearson's statistic has mean 19 and variance 38 over 20 ranks.
TEST(Zipf, DrawsEveryRankWithItsProbability) {
  for (const double exponent : {0.0, 0.5, 0.999999, 1.0, 1.000001, 1.5, 3.0}) {
    SCOPED_TRACE(exponent);
    constexpr std::size_t kRanks = 20;
    std::array<int, kRanks> counts{};
    for (const double rank : samples_of(Zipf({.n = kRanks, .exponent = exponent}))) {
      ASSERT_GE(rank, 1.0);
      ASSERT_LE(rank, static_cast<double>(kRanks));
      ++counts[static_cast<std::size_t>(rank) - 1];
    }
    const std::vector<double> probabilities = zipf_probabilities(kRanks, exponent);
    double statistic = 0.0;
    for (std::size_t i = 0; i < kRanks; ++i) {
      const double expected = probabilities[i] * static_cast<double>(kSamples);
      statistic += (counts[i] - expected) * (counts[i] - expected) / expected;
    }
    EXPECT_LT(statistic, 19.0 + 5.0 * std::sqrt(38.0));
  }
}

TEST(Zipf, HasItsMoments) {
  constexpr std::size_t kRanks = 1000;
  std::array<double, 4> raw{};
  const std::vector<double> probabilities = zipf_probabilities(kRanks, 1.2);
  for (std::size_t i = 0; i < kRanks; ++i) {
    for (std::size_t k = 0; k < raw.size(); ++k) {
      raw[k] += probabilities[i] * std::pow(static_cast<double>(i + 1), static_cast<double>(k + 1));
    }
  }
  expect_moments(samples_of(Zipf({.n = kRanks, .exponent = 1.2})), central(raw));
}

/// The sum of k^-s for k = 1..n: a thousand terms, the rest by Euler and Maclaurin.
double harmonic(double n, double s) {
  constexpr double kDirect = 1000.0;
  double sum = 0.0;
  for (int k = static_cast<int>(std::min(n, kDirect)); k >= 1; --k) sum += std::pow(k, -s);
  if (n <= kDirect) return sum;
  const auto integral = [s](double x) {
    return s == 1.0 ? std::log(x) : std::pow(x, 1.0 - s) / (1.0 - s);
  };
  const auto edge = [s](double x) {
    return 0.5 * std::pow(x, -s) - s * std::pow(x, -s - 1.0) / 12.0;
  };
  return sum + (integral(n) - integral(kDirect)) + (edge(n) - edge(kDirect));
}

TEST(Zipf, HoldsItsShapeOverABillionRanks) {
  constexpr double kRanks = 1e9;
  for (const double exponent : {0.0, 0.8, 1.0, 1.1}) {
    std::vector<double> samples = samples_of(Zipf({.n = 1'000'000'000, .exponent = exponent}));
    for (const double rank : {1.0, 2.0, 10.0, 1e3, 1e5, 1e7, 5e8}) {
      SCOPED_TRACE(testing::Message() << "exponent " << exponent << ", ranks up to " << rank);
      const double p = harmonic(rank, exponent) / harmonic(kRanks, exponent);
      const auto below = std::count_if(samples.begin(), samples.end(),
                                       [rank](double sample) { return sample <= rank; });
      const double n = static_cast<double>(kSamples);
      EXPECT_NEAR(static_cast<double>(below), n * p, 5.0 * std::sqrt(n * p * (1.0 - p)) + 1.0);
    }
    EXPECT_LE(*std::max_element(samples.begin(), samples.end()), kRanks);
  }
}

TEST(Zipf, CopesWithOneRankAndWithSteepExponents) {
  Rng rng(1);
  const Zipf single({.n = 1, .exponent = 1.3});
  const Zipf steep({.n = 1'000'000, .exponent = 60.0});
  const Zipf widest({.n = std::uint64_t{1} << 50, .exponent = 0.0});
  std::uint64_t largest = 0;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(single.sample(rng), 1U);
    EXPECT_EQ(steep.sample(rng), 1U);
    largest = std::max(largest, widest.sample(rng));
  }
  EXPECT_GT(largest, std::uint64_t{1} << 49);
  EXPECT_LE(largest, std::uint64_t{1} << 50);
}

TEST(ZipfDeathTest, WithoutRanksOrWithGrowingWeightsEndsTheProcess) {
  EXPECT_DEATH(Zipf({.n = 0, .exponent = 1.0}), "assertion failed");
  EXPECT_DEATH(Zipf({.n = 5, .exponent = -1.0}), "assertion failed");
}

/// The first three samples under seed 42.
template <class Distribution>
std::array<double, 3> first_of(const Distribution& distribution) {
  Rng rng(42);
  std::array<double, 3> first{};
  for (double& sample : first) sample = static_cast<double>(distribution.sample(rng));
  return first;
}

using First = std::array<double, 3>;

// These change only when an algorithm does, and then every recorded history changes with them.
TEST(Distribution, FirstSamplesAreTheValuesWrittenHere) {
  EXPECT_EQ(first_of(Uniform{.low = -2.0, .high = 6.0}),
            (First{0x1.20ec9a9e88ecdp+2, 0x1.19e4174576f3p-1, 0x1.77c0f9f61849dp+2}));
  EXPECT_EQ(first_of(Exponential{.rate = 0.25}),
            (First{0x1.af03b8672f7bfp+2, 0x1.892500bf42edfp+0, 0x1.083a8dcd9e28ap+4}));
  EXPECT_EQ(first_of(Weibull{.shape = 0.7, .scale = 2.0}),
            (First{0x1.0d6b138e5fffep+2, 0x1.04d71cd1bf2d3p-1, 0x1.e52ba297aa626p+3}));
  EXPECT_EQ(first_of(Normal{.mean = -3.0, .deviation = 2.0}),
            (First{-0x1.0986267495485p+0, -0x1.470359731e7bp-2, -0x1.3b6b93da553bcp+2}));
  EXPECT_EQ(first_of(Lognormal{.mu = 1.0, .sigma = 0.5}),
            (First{0x1.1c2c386c1e452p+2, 0x1.5408babbdde2p+2, 0x1.adb0fd3052337p+0}));
  EXPECT_EQ(first_of(Zipf({.n = 1'000'000'000, .exponent = 1.1})),
            (First{0x1.8p+1, 0x1.4e8p+12, 0x1p+0}));
}

/// A hash of 100,000 samples, to notice a change that the first ones do not show.
template <class Distribution>
std::uint64_t hash_of(const Distribution& distribution) {
  Rng rng(42);
  std::uint64_t hash = 0;
  for (int i = 0; i < 100'000; ++i) {
    const auto bits = std::bit_cast<std::uint64_t>(static_cast<double>(distribution.sample(rng)));
    hash = (std::rotl(hash, 5) ^ bits) * 0x9e3779b97f4a7c15;
  }
  return hash;
}

TEST(Distribution, AHundredThousandSamplesHashToTheseValues) {
  EXPECT_EQ(hash_of(Uniform{.low = -2.1, .high = 6.3}), 0x87fcffa98bafbdafU);
  EXPECT_EQ(hash_of(Exponential{.rate = 0.25}), 0x2fcd777e4db6dcd8U);
  EXPECT_EQ(hash_of(Weibull{.shape = 0.7, .scale = 2.0}), 0x6530b09e12cbcdd1U);
  EXPECT_EQ(hash_of(Normal{.mean = -3.0, .deviation = 2.0}), 0xdd38647e401ca4b7U);
  EXPECT_EQ(hash_of(Lognormal{.mu = 1.0, .sigma = 0.5}), 0x371b125bc7016739U);
  EXPECT_EQ(hash_of(Zipf({.n = 1'000'000'000, .exponent = 1.1})), 0xcdb13561db276843U);
}

TEST(Gamma, HasItsMeanAndVariance) {
  for (const double shape : {0.0625, 0.5, 1.0, 7.0}) {
    Rng rng(11);
    const Gamma law{.shape = shape, .scale = 2};
    double sum = 0;
    double squares = 0;
    constexpr int kDraws = 200'000;
    for (int i = 0; i < kDraws; ++i) {
      const double x = law.sample(rng);
      ASSERT_GE(x, 0);
      sum += x;
      squares += x * x;
    }
    const double mean = sum / kDraws;
    EXPECT_NEAR(mean / (2 * shape), 1, 0.05);
    EXPECT_NEAR((squares / kDraws - mean * mean) / (4 * shape), 1, 0.1);
  }
}

}  // namespace
}  // namespace orrery
