#include "twin/outages/fault_schedule.hpp"

#include <gtest/gtest.h>

#include "twin/faults/failure_test.hpp"

namespace orrery {
namespace {

FailureModel drawn_faults() {
  return *FailureModel::make(supplied_fleet(), failure_spec("measured"), {.seed = 1});
}

TEST(FaultSchedule, WithoutChanceOnlyWhatIsWrittenHappens) {
  FaultSchedule schedule(std::nullopt, {{.at = Instant() + kDay}, {.at = Instant() + kDay * 2}});
  EXPECT_EQ(schedule.take_next()->at, Instant() + kDay);
  EXPECT_EQ(schedule.take_next()->at, Instant() + kDay * 2);
  EXPECT_FALSE(schedule.take_next());
}

TEST(FaultSchedule, WrittenAndDrawnFaultsComeInTheOrderOfTimeAndNoneIsLost) {
  FailureModel model = drawn_faults();
  const Fault first = *model.next(Instant::max());
  const Fault second = *model.next(Instant::max());
  Fault same = first;  // at the time of a drawn fault
  same.evidence = "written";
  Fault late = second;
  late.at = second.at + Duration::nanoseconds(1);
  late.evidence = "written";
  FaultSchedule schedule(drawn_faults(), {same, late});
  EXPECT_EQ(schedule.take_next(), same) << "the written one comes first";
  EXPECT_EQ(schedule.take_next(), first);
  EXPECT_EQ(schedule.take_next(), second);
  Instant last = second.at;
  bool seen = false;
  for (int i = 0; i < 100; ++i) {
    const std::optional<Fault> fault = schedule.take_next();
    ASSERT_TRUE(fault);
    EXPECT_GE(fault->at, last);
    last = fault->at;
    seen = seen || *fault == late;
  }
  EXPECT_TRUE(seen);
}

}  // namespace
}  // namespace orrery
