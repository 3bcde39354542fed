// base/numbers/rng_test.cpp - published vectors, uniformity, and the independence of named streams.
#include "base/numbers/rng.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace orrery {
namespace {

constexpr int kDraws = 200'000;

TEST(Rng, DrawsTheNumbersOfTheReferenceImplementationOfXoshiro256PlusPlus) {
  Rng rng = Rng::from_state({{1, 2, 3, 4}});
  for (const std::uint64_t expected :
       {41943041ULL, 58720359ULL, 3588806011781223ULL, 3591011842654386ULL, 9228616714210784205ULL,
        9973669472204895162ULL, 14011001112246962877ULL, 12406186145184390807ULL,
        15849039046786891736ULL, 10450023813501588000ULL}) {
    EXPECT_EQ(rng.next_u64(), expected);
  }
}

TEST(Rng, SeedsItsStateWithTheNumbersOfTheReferenceImplementationOfSplitMix64) {
  const Rng::State expected = {{6457827717110365317ULL, 3203168211198807973ULL,
                                9817491932198370423ULL, 4593380528125082431ULL}};
  EXPECT_EQ(Rng(1234567).state(), expected);
}

TEST(Rng, SeedsAndStreamsKeepTheirFirstNumbersForever) {
  Rng seeded(42);
  EXPECT_EQ(seeded.next_u64(), 0xd0764d4f4476689fULL);
  EXPECT_EQ(seeded.next_u64(), 0x519e4174576f3791ULL);
  Rng named = Rng::stream(42, "twin/faults");
  EXPECT_EQ(named.next_u64(), 0x5a3ac2bb13b32950ULL);
  EXPECT_EQ(named.next_u64(), 0x87229115dc9acf34ULL);
}

TEST(Rng, ContinuesFromASavedStateAsIfNothingHappened) {
  Rng rng(7);
  for (int i = 0; i < 1000; ++i) rng.next_u64();
  const Rng::State saved = rng.state();
  Rng restored = Rng::from_state(saved);
  EXPECT_EQ(restored, rng);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(restored.next_u64(), rng.next_u64());
  EXPECT_EQ(restored, rng);
  EXPECT_NE(rng.state(), saved);
}

TEST(Rng, ComparesEqualOnlyAtTheSamePoint) {
  Rng a(5);
  Rng b(5);
  EXPECT_EQ(a, b);
  a.next_u64();
  EXPECT_NE(a, b);
  b.next_u64();
  EXPECT_EQ(a, b);
  EXPECT_NE(Rng(5), Rng(6));
}

TEST(Rng, UniformStaysBelowOneAndUsesFiftyThreeBits) {
  Rng rng(11);
  Rng words(11);
  std::uint64_t bits_seen = 0;
  double sum = 0.0;
  for (int i = 0; i < kDraws; ++i) {
    const double u = rng.uniform();
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    ASSERT_EQ(u * 0x1p53, static_cast<double>(words.next_u64() >> 11));
    bits_seen |= static_cast<std::uint64_t>(u * 0x1p53);
    sum += u;
  }
  EXPECT_EQ(bits_seen, (std::uint64_t{1} << 53) - 1);
  EXPECT_NEAR(sum / kDraws, 0.5, 5.0 * std::sqrt(1.0 / 12.0 / kDraws));
}

TEST(Rng, EveryBitIsSetHalfTheTime) {
  Rng rng(13);
  std::array<int, 64> counts{};
  for (int i = 0; i < kDraws; ++i) {
    const std::uint64_t word = rng.next_u64();
    for (std::size_t bit = 0; bit < counts.size(); ++bit) {
      counts[bit] += static_cast<int>((word >> bit) & 1);
    }
  }
  for (std::size_t bit = 0; bit < counts.size(); ++bit) {
    EXPECT_NEAR(counts[bit], kDraws / 2.0, 5.0 * std::sqrt(kDraws / 4.0)) << "bit " << bit;
  }
}

/// Pearson's statistic of counts that should all be equal.
double chi_square(const std::vector<int>& counts) {
  double total = 0.0;
  for (const int count : counts) total += count;
  const double expected = total / static_cast<double>(counts.size());
  double sum = 0.0;
  for (const int count : counts) sum += (count - expected) * (count - expected) / expected;
  return sum;
}

TEST(Rng, BelowSpreadsEvenlyOverSmallRanges) {
  for (const std::uint64_t n : {2u, 3u, 7u, 10u, 64u, 100u}) {
    Rng rng(17);
    std::vector<int> counts(n);
    for (int i = 0; i < kDraws; ++i) {
      const std::uint64_t value = rng.below(n);
      ASSERT_LT(value, n);
      ++counts[value];
    }
    const double freedom = static_cast<double>(n - 1);
    EXPECT_LT(chi_square(counts), freedom + 5.0 * std::sqrt(2.0 * freedom) + 5.0) << n;
  }
}

// With n = 3/4 of 2^64, scaling without rejection would give every third number twice as often, and
// the remainder would favour the lowest third.
TEST(Rng, BelowHasNoBiasWhereTheRangeDoesNotDivideTheWord) {
  constexpr std::uint64_t kRange = std::uint64_t{3} << 62;
  Rng rng(19);
  std::vector<int> thirds(3);
  std::vector<int> remainders(3);
  for (int i = 0; i < kDraws; ++i) {
    const std::uint64_t value = rng.below(kRange);
    ASSERT_LT(value, kRange);
    ++thirds[value >> 62];
    ++remainders[value % 3];
  }
  EXPECT_LT(chi_square(thirds), 20.0);
  EXPECT_LT(chi_square(remainders), 20.0);
}

TEST(Rng, BelowOneIsZeroAndBelowTheLargestWordReachesTheTop) {
  Rng rng(23);
  std::uint64_t largest = 0;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(rng.below(1), 0U);
    largest = std::max(largest, rng.below(~std::uint64_t{0}));
  }
  EXPECT_GT(largest, std::uint64_t{1} << 63);
}

TEST(Rng, AStreamDependsOnSeedAndNameAloneNotOnWhichOthersExist) {
  Rng faults = Rng::stream(1, "faults");
  Rng arrivals = Rng::stream(1, "arrivals");
  std::vector<std::uint64_t> expected;
  for (int i = 0; i < 100; ++i) {
    faults.next_u64();
    expected.push_back(arrivals.next_u64());
  }

  Rng alone = Rng::stream(1, "arrivals");
  Rng late = Rng::stream(1, "faults");
  for (const std::uint64_t value : expected) EXPECT_EQ(alone.next_u64(), value);
  EXPECT_EQ(late, Rng::stream(1, "faults"));
}

TEST(Rng, NamesAndSeedsGiveDifferentStreams) {
  std::set<std::uint64_t> first_numbers;
  int streams = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    first_numbers.insert(Rng(seed).next_u64());
    first_numbers.insert(Rng::stream(seed, "").next_u64());
    streams += 2;
    for (int node = 0; node < 500; ++node) {
      first_numbers.insert(Rng::stream(seed, "node/" + std::to_string(node)).next_u64());
      ++streams;
    }
  }
  EXPECT_EQ(first_numbers.size(), static_cast<std::size_t>(streams));
}

/// Sample correlation of the uniforms of two generators, times the root of the number of draws.
double correlation_in_sigmas(Rng a, Rng b) {
  double sum = 0.0;
  for (int i = 0; i < kDraws; ++i) sum += (a.uniform() - 0.5) * (b.uniform() - 0.5);
  return sum * 12.0 / std::sqrt(static_cast<double>(kDraws));
}

/// How far the number of equal bits of two generators is from one half, in standard deviations.
double agreement_in_sigmas(Rng a, Rng b) {
  double agreeing = 0.0;
  for (int i = 0; i < kDraws; ++i) agreeing += std::popcount(~(a.next_u64() ^ b.next_u64()));
  return (agreeing - 32.0 * kDraws) / std::sqrt(16.0 * kDraws);
}

TEST(Rng, StreamsOfSimilarNamesAndSeedsAreUncorrelated) {
  const Rng base = Rng::stream(1, "node/1");
  for (const Rng& other : {Rng::stream(1, "node/2"), Rng::stream(2, "node/1"), Rng::stream(1, ""),
                           Rng::stream(0, "node/1"), Rng(1), Rng(2)}) {
    EXPECT_LT(std::abs(correlation_in_sigmas(base, other)), 5.0);
    EXPECT_LT(std::abs(agreement_in_sigmas(base, other)), 5.0);
  }
  EXPECT_GT(correlation_in_sigmas(base, base), 400.0);
}

TEST(RngDeathTest, MisuseEndsTheProcess) {
  Rng rng(1);
  EXPECT_DEATH(rng.below(0), "assertion failed");
  EXPECT_DEATH(static_cast<void>(Rng::from_state({})), "assertion failed");
}

}  // namespace
}  // namespace orrery
