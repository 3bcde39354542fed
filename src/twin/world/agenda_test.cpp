#include "twin/world/agenda.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

Instant at(std::int64_t seconds) { return Instant() + Duration::seconds(seconds); }

TEST(Agenda, EventsOfOneInstantComeByRankAndThenInTheOrderTheyWerePlanned) {
  Agenda agenda;
  EXPECT_EQ(agenda.next(), Instant::max());
  agenda.push(at(5), EventRank::kSettle, {.index = 4});
  agenda.push(at(5), EventRank::kThen, {.index = 2});
  agenda.push(at(5), EventRank::kThen, {.index = 3});
  agenda.push(at(5), EventRank::kEnds, {.index = 1});
  agenda.push(at(2), EventRank::kSettle, {.index = 0});
  ASSERT_EQ(agenda.size(), 5U);
  EXPECT_EQ(agenda.next(), at(2));
  for (std::uint32_t index = 0; index < 5; ++index) EXPECT_EQ(agenda.pop().index, index);
  EXPECT_EQ(agenda.size(), 0U);
}

TEST(Agenda, AnInputArrivesAtItsTimeAsItWasMade) {
  Agenda agenda;
  agenda.push_input(at(9), EventRank::kThen, NodeRepaired{NodeId(9)});
  agenda.push_input(at(3), EventRank::kThen, NodeRepaired{NodeId(3)});
  for (const std::uint32_t node : {3U, 9U}) {
    const WorldEvent event = agenda.pop();
    ASSERT_EQ(event.kind, WorldEventKind::kInput);
    EXPECT_EQ(std::get<NodeRepaired>(agenda.take_input(event)).node, NodeId(node));
  }
}

}  // namespace
}  // namespace orrery
