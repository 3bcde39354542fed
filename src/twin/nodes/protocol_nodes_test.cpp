#include "twin/nodes/protocol_nodes.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

Instant at(std::int64_t seconds) { return Instant() + Duration::seconds(seconds); }

TEST(NodeClock, RunsByItsRateFromTheTimeItShows) {
  EXPECT_EQ(NodeClock(10'000, at(500), at(20)).shows(at(120)), at(600));
  EXPECT_EQ(NodeClock(10'100, at(500), at(20)).shows(at(120)), at(601));
  EXPECT_EQ(NodeClock(9'900, at(500), at(20)).shows(at(120)), at(599));
}

TEST(NodeClock, ABootBeginsAtZeroAndKeepsTheRate) {
  NodeClock clock(10'100, at(500), at(20));
  clock.restart(at(120));
  EXPECT_EQ(clock.shows(at(120)), at(0));
  EXPECT_EQ(clock.shows(at(220)), at(101));
}

// A timer must not fire before its time on the node's clock, nor a nanosecond too late.
TEST(NodeClock, ATimeIsShownFromTheFirstNanosecondThatReachesIt) {
  for (const std::int64_t rate : {9'900, 9'999, 10'000, 10'001, 10'100}) {
    SCOPED_TRACE(rate);
    const NodeClock clock(rate, at(500), at(20));
    for (std::int64_t ns = 0; ns < 30'000; ns += 7) {
      const Instant shown = at(500) + Duration::nanoseconds(1 + ns);
      const Instant when = clock.when_shows(shown);
      ASSERT_GE(clock.shows(when), shown) << ns;
      ASSERT_LT(clock.shows(when - Duration::nanoseconds(1)), shown) << ns;
    }
  }
}

TEST(NodeClock, ATimeMoreThanAYearAheadNeverComes) {
  const NodeClock clock(10'000, at(500), at(20));
  const Duration year = Duration::hours(24) * 365;
  EXPECT_EQ(clock.when_shows(at(500) + year), at(20) + year);
  EXPECT_EQ(clock.when_shows(at(500) + year + Duration::nanoseconds(1)), Instant::max());
  EXPECT_EQ(clock.when_shows(Instant::max()), Instant::max());
}

}  // namespace
}  // namespace orrery
