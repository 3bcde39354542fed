// serving/latency_histogram_test.cpp - quantiles and counts of late ones, as the durations have
// them.
#include "serving/latency_histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

TEST(LatencyHistogram, CountsWhatIsLongerToWithinTheWidthOfABucket) {
  Rng rng(3);
  LatencyHistogram histogram;
  std::vector<Duration> all;
  for (int i = 0; i < 5000; ++i) {
    all.push_back(Duration::from_seconds(0.001 + 2 * rng.uniform() * rng.uniform()));
    histogram.add(all.back());
  }
  const auto longer = [&](double limit_s) {
    return static_cast<std::uint64_t>(std::ranges::count_if(
        all, [&](Duration each) { return each > Duration::from_seconds(limit_s); }));
  };
  constexpr double kWidth = 1.0905;  // 2^(1/8)
  for (const double limit_s : {0.01, 0.1, 0.5, 1.0, 1.9}) {
    const std::uint64_t above = histogram.count_above(Duration::from_seconds(limit_s));
    EXPECT_LE(above, longer(limit_s / kWidth)) << limit_s;
    EXPECT_GE(above, longer(limit_s * kWidth)) << limit_s;
  }
  EXPECT_EQ(histogram.count_above(Duration::seconds(10)), 0u);
  EXPECT_EQ(histogram.count_above(Duration()), 5000u);
  EXPECT_EQ(LatencyHistogram().count_above(Duration()), 0u);
}

}  // namespace
}  // namespace orrery
