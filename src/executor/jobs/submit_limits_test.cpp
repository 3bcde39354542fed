#include "executor/jobs/submit_limits.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

Instant at(double seconds) { return Instant() + Duration::from_seconds(Seconds(seconds).value()); }

TEST(SubmitLimits, WithoutARateNobodyIsHeld) {
  SubmitLimits limits;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(limits.admit("a", at(0)));
}

TEST(SubmitLimits, EachTenantHasABurstAndThenTheRate) {
  SubmitLimits limits;
  ControllerSettings settings;
  settings.submit_rate = 2;
  settings.submit_burst = 3;
  limits.set(settings);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(limits.admit("a", at(0)));
  const Status held = limits.admit("a", at(0));
  ASSERT_FALSE(held);
  EXPECT_EQ(held.error().text(),
            "tenant a is above 2 submissions a second; the next is taken in 0.5 s");
  EXPECT_TRUE(limits.admit("b", at(0)));
  EXPECT_FALSE(limits.admit("a", at(0.4)));
  EXPECT_TRUE(limits.admit("a", at(0.5)));
  EXPECT_FALSE(limits.admit("a", at(0.6)));
  // After any idle time the bucket holds only the burst.
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(limits.admit("a", at(3600)));
  EXPECT_FALSE(limits.admit("a", at(3600)));
}

TEST(SubmitLimits, OthersHoldFromNowOn) {
  SubmitLimits limits;
  ControllerSettings settings;
  settings.submit_rate = 1;
  limits.set(settings);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(limits.admit("", at(0)));
  EXPECT_FALSE(limits.admit("", at(0)));
  settings.submit_rate = 0;
  limits.set(settings);
  EXPECT_TRUE(limits.admit("", at(0)));
}

}  // namespace
}  // namespace orrery
