#include "control/core/core_timers.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

Instant at(std::int64_t seconds) { return Instant() + Duration::seconds(seconds); }

TEST(CoreTimers, AreTakenOnceByTimeThenJobWhenTheyAreDue) {
  CoreTimers timers;
  EXPECT_EQ(timers.next(), Instant::max());
  EXPECT_EQ(timers.take_due(Instant::max()), std::nullopt);
  timers.set(at(20), JobId(1));
  timers.set(at(10), JobId(7));
  timers.set(at(10), JobId(3));
  timers.set(at(10), JobId(3));
  timers.set_window(at(10));
  EXPECT_EQ(timers.next(), at(10));
  EXPECT_EQ(timers.take_due(at(9)), std::nullopt);
  EXPECT_EQ(timers.take_due(at(15)), (CoreTimers::Timer{at(10), JobId(3)}));
  EXPECT_EQ(timers.take_due(at(15)), (CoreTimers::Timer{at(10), JobId(7)}));
  EXPECT_EQ(timers.take_due(at(15)), (CoreTimers::Timer{at(10), JobId()})) << "the window";
  EXPECT_EQ(timers.take_due(at(15)), std::nullopt);
  EXPECT_EQ(timers.next(), at(20));
  EXPECT_EQ(timers.take_due(at(20)), (CoreTimers::Timer{at(20), JobId(1)}));
}

}  // namespace
}  // namespace orrery
