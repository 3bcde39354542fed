// perf/straggler_test.cpp - the last of n ranks against exact order statistics and against a draw.
#include "perf/straggler.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/numbers/distribution.hpp"
#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

// Exact: 1/sqrt(pi), 3/(2 sqrt(pi)); 1.5388 and 2.5076 from tables of normal order statistics.
TEST(Straggler, AgreesWithExactOrderStatistics) {
  const double root_pi = std::sqrt(std::acos(-1.0));
  EXPECT_EQ(expected_max_of_normals(1), 0);
  EXPECT_NEAR(expected_max_of_normals(2), 1 / root_pi, 1e-5);
  EXPECT_NEAR(expected_max_of_normals(3), 1.5 / root_pi, 0.013 * 1.5 / root_pi);
  EXPECT_NEAR(expected_max_of_normals(10), 1.5388, 0.01);
  EXPECT_NEAR(expected_max_of_normals(100), 2.5076, 0.005);
}

TEST(Straggler, AgreesWithTheMeanOfDraws) {
  Rng rng(41);
  for (const int n : {4, 23, 300}) {
    constexpr int kDraws = 4000;
    double sum = 0;
    for (int draw = 0; draw < kDraws; ++draw) {
      double last = -100;
      for (int i = 0; i < n; ++i) last = std::max(last, Normal{}.sample(rng));
      sum += last;
    }
    EXPECT_NEAR(sum / kDraws, expected_max_of_normals(n), 0.04) << n;
  }
}

TEST(Straggler, GrowsStrictlyAndStaysBelowTheBoundOfTheMaximum) {
  double before = 0;
  for (double n = 1.25; n < 1e29; n *= 1.25) {
    const double here = expected_max_of_normals(n);
    EXPECT_GT(here, before) << n;
    EXPECT_LT(here, std::sqrt(2 * std::log(n))) << n;
    before = here;
  }
}

}  // namespace
}  // namespace orrery
