#include "serving/scaling/late_correction.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

/// The share of late requests of a service at a load, where 1 is what it really serves.
double late_at(double load) { return std::clamp(2 * (load - 1) + 0.006, 0.0, 1.0); }

TEST(LateCorrection, TheMeanShareOfLateRequestsTendsToWhatMayBeLateWhateverTheModelIsWrongBy) {
  for (const double wrong : {0.7, 0.9, 1.0, 1.2, 1.4}) {
    SCOPED_TRACE(wrong);
    Rng rng(1);
    LateCorrection correction;
    double late = 0;
    double all = 0;
    for (int tick = 0; tick < 17'280; ++tick) {
      const double requests = 20 + 200 * rng.uniform();
      const double load = correction.factor() / wrong * (0.9 + 0.2 * rng.uniform());
      const double missed = requests * late_at(load);
      correction.add({.requests = requests, .late = missed}, ReplicaCount::kFollows);
      late += missed;
      all += requests;
    }
    EXPECT_LT(late / all, 0.008);
    EXPECT_GT(late / all, 0.004);
    EXPECT_NEAR(correction.factor() / wrong, 0.95, 0.06);
  }
}

TEST(LateCorrection, DoesNotGrowWithTheLeastReplicasAndStaysWithinItsLimits) {
  LateCorrection correction;
  for (int i = 0; i < 100'000; ++i) correction.add({.requests = 10}, ReplicaCount::kLeast);
  EXPECT_EQ(correction.factor(), 1);
  for (int i = 0; i < 100'000; ++i) correction.add({.requests = 10}, ReplicaCount::kFollows);
  EXPECT_NEAR(correction.factor(), 1.65, 0.01);
  for (int i = 0; i < 1000; ++i) {
    correction.add({.requests = 10, .late = 10}, ReplicaCount::kLeast);
  }
  EXPECT_NEAR(correction.factor(), 0.5, 0.01);
  correction.add({}, ReplicaCount::kFollows);
  EXPECT_NEAR(correction.factor(), 0.5, 0.01) << "without requests nothing is known";
}

}  // namespace
}  // namespace orrery
