#include "inference/formats/rope_scaling.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace orrery {
namespace {

TEST(RopeScaling, LinearSlowsAllPairsAlike) {
  EXPECT_EQ(linear_rope_factors({.half = 3}, 4), (std::vector<double>{0.25, 0.25, 0.25}));
}

TEST(RopeScaling, Llama3KeepsFastPairsAndSlowsThoseThatDoNotTurnOnce) {
  // Pairs turn by 1, 0.1, 0.01, 0.001: within 1000 tokens 159, 15.9, 1.59 and 0.159 times.
  const std::vector<double> factors =
      llama3_rope_factors({.half = 4, .base = 1e4}, {.factor = 8,
                                                     .low_frequency_factor = 1,
                                                     .high_frequency_factor = 4,
                                                     .original_context = 1000});
  ASSERT_EQ(factors.size(), 4U);
  EXPECT_EQ(factors[0], 1);
  EXPECT_EQ(factors[1], 1);
  const double share = (1000 * 0.01 / 6.283185307179586 - 1) / 3;
  EXPECT_NEAR(factors[2], (1 - share) / 8 + share, 1e-12);
  EXPECT_EQ(factors[3], 1.0 / 8);
  EXPECT_TRUE(std::ranges::is_sorted(factors, std::ranges::greater()));
}

}  // namespace
}  // namespace orrery
