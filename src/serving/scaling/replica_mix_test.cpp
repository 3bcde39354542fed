// serving/scaling/replica_mix_test.cpp - least-cost mixes beside an enumeration of all counts.
#include "serving/scaling/replica_mix.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

TEST(ReplicaMix, TakesTheCheaperMachineUnlessTheDearOneFitsBetter) {
  // Four small ones serve the demand for 4, two large ones for 5, both kinds together for 4.5.
  const std::vector<MixVariant> variants{{.serves = 0.25, .usd_s = 1, .most = 8},
                                         {.serves = 0.5, .usd_s = 2.5, .most = 8}};
  EXPECT_EQ(least_cost_mix(variants, {.most = 8}).counts, (std::vector<std::uint32_t>{4, 0}));
  // One of three replicas must be large.
  EXPECT_EQ(least_cost_mix(variants, {.most = 3}).counts, (std::vector<std::uint32_t>{2, 1}));
}

TEST(ReplicaMix, EnergyMovesTheChoiceAndACapLimitsIt) {
  std::vector<MixVariant> variants{{.serves = 0.5, .usd_s = 1, .watts = 1000, .most = 8},
                                   {.serves = 0.5, .usd_s = 1.01, .watts = 500, .most = 8}};
  EXPECT_EQ(least_cost_mix(variants, {.most = 8}).counts, (std::vector<std::uint32_t>{2, 0}));
  EXPECT_EQ(least_cost_mix(variants, {.most = 8, .usd_per_joule = 1e-4}).counts,
            (std::vector<std::uint32_t>{0, 2}));
  EXPECT_EQ(least_cost_mix(variants, {.most = 8, .watts = 1500}).counts,
            (std::vector<std::uint32_t>{1, 1}));
  const ReplicaMix capped = least_cost_mix(variants, {.most = 8, .watts = 900});
  EXPECT_EQ(capped.counts, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_LT(capped.serves, 1);
  variants[0].least = 3;
  EXPECT_TRUE(least_cost_mix(variants, {.most = 8, .watts = 900}).counts.empty());
}

/// What a mix is judged by: demand that is not served, then dollars.
struct Judged {
  double unserved = 2;
  double usd_s = 0;
};

Judged judge(const std::vector<MixVariant>& variants, const MixLimits& limits,
             const std::vector<std::uint32_t>& counts) {
  std::uint32_t sum = 0;
  double serves = 0;
  double watts = 0;
  Judged judged;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    sum += counts[i];
    serves += counts[i] * variants[i].serves;
    watts += counts[i] * variants[i].watts;
    judged.usd_s += counts[i] * (variants[i].usd_s + limits.usd_per_joule * variants[i].watts);
  }
  const bool fits =
      sum >= limits.least && sum <= limits.most && (!limits.watts || watts <= *limits.watts + 1e-9);
  if (fits) judged.unserved = serves >= 1 - 1e-9 ? 0 : 1 - serves;
  return judged;
}

/// The best of all counts within their limits.
Judged enumerate(const std::vector<MixVariant>& variants, const MixLimits& limits) {
  Judged best;
  std::vector<std::uint32_t> counts;
  counts.reserve(variants.size());
  for (const MixVariant& each : variants) counts.push_back(each.least);
  while (true) {
    const Judged now = judge(variants, limits, counts);
    const bool served_alike = std::abs(now.unserved - best.unserved) < 1e-9;
    if (now.unserved < best.unserved - 1e-9 || (served_alike && now.usd_s < best.usd_s)) best = now;
    std::size_t i = 0;
    while (i < counts.size() && counts[i] >= variants[i].most) {
      counts[i] = variants[i].least;
      ++i;
    }
    if (i == counts.size()) return best;
    ++counts[i];
  }
}

TEST(ReplicaMix, EqualsTheBestOfAllCounts) {
  int served = 0;
  int capped = 0;
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    Rng rng(seed);
    std::vector<MixVariant> variants(1 + rng.below(4));
    for (MixVariant& each : variants) {
      each = {.serves = rng.below(20) == 0 ? 0 : 0.05 + rng.uniform() / 2,
              .usd_s = static_cast<double>(rng.below(5)) + (rng.below(2) == 0 ? rng.uniform() : 0),
              .watts = 100 * static_cast<double>(1 + rng.below(10)),
              .least = static_cast<std::uint32_t>(rng.below(3)),
              .most = 0};
      each.most = each.least + static_cast<std::uint32_t>(rng.below(6));
    }
    MixLimits limits{.least = static_cast<std::uint32_t>(rng.below(5)),
                     .most = static_cast<std::uint32_t>(1 + rng.below(12))};
    if (rng.below(3) == 0) limits.watts = 500 + 5000 * rng.uniform();
    if (rng.below(2) == 0) limits.usd_per_joule = 0.002;
    const Judged best = enumerate(variants, limits);
    const ReplicaMix found = least_cost_mix(variants, limits);
    if (best.unserved > 1) {
      ASSERT_TRUE(found.counts.empty()) << "seed " << seed;
      continue;
    }
    ASSERT_EQ(found.counts.size(), variants.size()) << "seed " << seed;
    const Judged judged = judge(variants, limits, found.counts);
    ASSERT_NEAR(judged.unserved, best.unserved, 1e-9) << "seed " << seed;
    ASSERT_NEAR(judged.usd_s, best.usd_s, 1e-6) << "seed " << seed;
    for (std::size_t i = 0; i < variants.size(); ++i) {
      ASSERT_GE(found.counts[i], variants[i].least) << "seed " << seed;
      ASSERT_LE(found.counts[i], variants[i].most) << "seed " << seed;
    }
    ASSERT_NEAR(found.usd_s, judged.usd_s, 1e-6) << "seed " << seed;
    (best.unserved > 0 ? capped : served) += 1;
  }
  EXPECT_GT(served, 300);
  EXPECT_GT(capped, 300);
}

}  // namespace
}  // namespace orrery
