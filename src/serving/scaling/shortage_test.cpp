#include "serving/scaling/shortage.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

constexpr TickLoad kEnough{.needed = 1.5, .ready = 2, .open = 10, .answered = 50, .holds = 16};
constexpr TickLoad kTooFew{.needed = 6, .ready = 2, .open = 200, .answered = 60, .holds = 16};
constexpr TickLoad kDrains{.needed = 6, .ready = 8, .open = 100, .answered = 200, .holds = 64};
constexpr TickLoad kDrained{.needed = 6, .ready = 8, .open = 40, .answered = 150, .holds = 64};

TEST(Shortage, LastsUntilTheRequestsThatCameInItAreAnswered) {
  Shortage shortage;
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(shortage.add(kEnough));
  for (int i = 0; i < 12; ++i) EXPECT_TRUE(shortage.add(kTooFew)) << i;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(shortage.add(kDrains)) << i;
  EXPECT_TRUE(shortage.add(kDrained)) << "of the hundred that were there";
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(shortage.add(kDrained));
}

TEST(Shortage, DoesNotOutlastItselfWhereTheEstimateIsTooHigh) {
  Shortage shortage;
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(shortage.add(kTooFew));
  int more = 0;
  while (shortage.add({.needed = 1, .ready = 2, .open = 500, .answered = 100, .holds = 16})) ++more;
  EXPECT_EQ(more, 4 + 10 + 5) << "the mean falls, as long again, and five hundred answers";
}

TEST(Shortage, RequestsThatPileUpWithEnoughReplicasAreNone) {
  Shortage shortage;
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(shortage.add({.needed = 1.9, .ready = 2, .open = 10.0 * i, .holds = 16}));
  }
}

TEST(Shortage, ABurstWithinHalfAMinuteIsNone) {
  Shortage shortage;
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(shortage.add(kEnough));
  TickLoad burst = kEnough;
  burst.needed = 4;
  EXPECT_FALSE(shortage.add(burst));
  EXPECT_FALSE(shortage.add(kEnough));
}

}  // namespace
}  // namespace orrery
