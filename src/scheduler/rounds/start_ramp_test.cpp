#include "scheduler/rounds/start_ramp.hpp"

#include <gtest/gtest.h>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

TEST(StartRamp, StartsFollowEachOtherAsFastAsTheRampCarriesThem) {
  const std::vector<Watts> rises{Watts(3e6), Watts(0), Watts(1e6), Watts(5e5)};
  const std::vector<Duration> offsets = stagger(rises, WattsPerSecond(1e6));
  EXPECT_EQ(offsets, (std::vector<Duration>{Duration(), Duration::seconds(3), Duration::seconds(3),
                                            Duration::seconds(4)}));
}

TEST(StartRamp, WhoComesLateEnoughDoesNotWait) {
  StartRamp site(WattsPerSecond(100));
  const Instant now = Instant() + Duration::hours(1);
  EXPECT_EQ(site.admit(now, Watts(1000)), now);
  EXPECT_EQ(site.admit(now + Duration::seconds(4), Watts(200)), now + Duration::seconds(10));
  EXPECT_EQ(site.admit(now + Duration::seconds(60), Watts(1)), now + Duration::seconds(60));
}

TEST(StartRamp, NoStretchOfTimeRisesFasterThanTheRampButForOneStart) {
  Rng rng = Rng::stream(1, "ramp");
  StartRamp site(WattsPerSecond(50));
  std::vector<std::pair<Instant, double>> starts;
  Instant now;
  double largest = 0;
  for (int i = 0; i < 200; ++i) {
    now = now + Duration::milliseconds(static_cast<std::int64_t>(rng.below(4000)));
    const double rise = rng.uniform() * 200;
    largest = std::max(largest, rise);
    starts.emplace_back(site.admit(now, Watts(rise)), rise);
    EXPECT_GE(starts.back().first, now);
  }
  for (std::size_t i = 0; i < starts.size(); ++i) {
    double sum = 0;
    for (std::size_t j = i; j < starts.size(); ++j) {
      sum += starts[j].second;
      const double seconds = (starts[j].first - starts[i].first).count_seconds();
      EXPECT_LE(sum, 50 * seconds + largest + 1e-6);
    }
  }
}

}  // namespace
}  // namespace orrery
