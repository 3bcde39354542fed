#include "verbs/record/event_difference.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TimedEvent at(std::int64_t seconds, Event event) {
  return {Instant() + Duration::seconds(seconds), std::move(event)};
}

TEST(EventDifference, IsTheKindWhereTheKindsDiffer) {
  EXPECT_EQ(event_difference(at(1, SpareSet{NodeId(0), true}), at(2, NodeBooted{NodeId(0), 7})),
            "SpareSet instead of NodeBooted");
}

TEST(EventDifference, IsTheFieldWhereTheKindsAreEqual) {
  EXPECT_EQ(event_difference(at(1, NodeBooted{NodeId(0), 8}), at(1, NodeBooted{NodeId(0), 7})),
            "NodeBooted: boot is 8 instead of 7");
}

TEST(EventDifference, CountsTheFieldsAfterTheFirst) {
  EXPECT_EQ(event_difference(at(1, NodeBooted{NodeId(3), 8}), at(1, NodeBooted{NodeId(0), 7})),
            "NodeBooted: boot is 8 instead of 7, and 1 more field differs");
  EXPECT_EQ(event_difference(at(1, NodeBooted{NodeId(3), 8}), at(2, NodeBooted{NodeId(0), 7})),
            "NodeBooted: at is \"1970-01-01T00:00:01Z\" instead of "
            "\"1970-01-01T00:00:02Z\", and 2 more fields differ");
}

TEST(EventDifference, AFieldThatOneEventLacksIsNothing) {
  const DevicesFreed one{.job = JobId(4), .attempt = 1, .nodes = {NodeId(2)}};
  const DevicesFreed two{.job = JobId(4), .attempt = 1, .nodes = {NodeId(2), NodeId(5)}};
  EXPECT_EQ(event_difference(at(1, one), at(1, two)),
            "DevicesFreed: nodes/1 is nothing instead of 5");
  EXPECT_EQ(event_difference(at(1, two), at(1, one)),
            "DevicesFreed: nodes/1 is 5 instead of nothing");
}

TEST(EventDifference, ALongTextIsCut) {
  const std::string difference =
      event_difference(at(1, DecisionDropped{JobId(0), std::string(1000, 'a')}),
                       at(1, DecisionDropped{JobId(0), "b"}));
  EXPECT_TRUE(difference.starts_with("DecisionDropped: why is \"aaaa")) << difference;
  EXPECT_TRUE(difference.ends_with(" instead of \"b\"")) << difference;
  EXPECT_LT(difference.size(), 120U);
}

}  // namespace
}  // namespace orrery
