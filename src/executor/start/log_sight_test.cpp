#include "executor/start/log_sight.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

Instant at(std::int64_t ms) { return Instant() + Duration::milliseconds(ms); }

TEST(LogSight, BatchesThatAreKnownAndNotAppliedCount) {
  LogSight sight(at(0));
  EXPECT_EQ(sight.progress(0, at(0)).behind_batches, 0u);
  sight.see({.term = 4, .writer = "a:1", .newest = 10}, at(0));
  sight.expect(25);
  sight.expect(12);
  const StandbyProgress progress = sight.progress(10, at(0));
  EXPECT_EQ(progress.behind_batches, 15u);
  EXPECT_EQ(progress.batch, 10u);
  EXPECT_EQ(progress.leader, "a:1");
  EXPECT_EQ(progress.term, 4u);
  EXPECT_EQ(sight.progress(26, at(0)).behind_batches, 0u)
      << "batches may come before they are seen";
}

TEST(LogSight, TheAgeIsThatOfTheNewestSignOfTheWriter) {
  LogSight sight(at(1000));
  EXPECT_EQ(sight.progress(0, at(1400)).behind, Duration::milliseconds(400)) << "nothing was seen";
  sight.see({.term = 4, .writer = "a:1", .newest = 10}, at(2000));
  sight.expect(12);
  EXPECT_EQ(sight.progress(10, at(5000)).behind, Duration::seconds(3)) << "that is no sign of it";
}

TEST(LogSight, AClaimThatIsRepeatedBeganWithItsFirstTryUntilSomethingElseIsSeen) {
  const Instant begin;
  LogSight sight(begin);
  sight.see({.term = 1, .newest = 3}, begin);
  EXPECT_EQ(sight.begin_claim(begin + Duration::seconds(2)), begin + Duration::seconds(2));
  sight.see({.term = 1, .newest = 3}, begin + Duration::seconds(3));
  EXPECT_EQ(sight.begin_claim(begin + Duration::seconds(5)), begin + Duration::seconds(2));
  sight.see({.term = 1, .newest = 4}, begin + Duration::seconds(6));
  EXPECT_EQ(sight.begin_claim(begin + Duration::seconds(9)), begin + Duration::seconds(9));
}

}  // namespace
}  // namespace orrery
