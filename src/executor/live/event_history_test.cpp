#include "executor/live/event_history.hpp"

#include <gtest/gtest.h>

#include "store/memory/memory_store.hpp"

namespace orrery {
namespace {

using Nodes = std::vector<std::uint32_t>;

/// A store with ten events about nodes 0 to 9: two in each batch, and two segments.
class EventHistoryTest : public ::testing::Test {
 protected:
  EventHistoryTest() {
    HistoryWriter writer({});
    for (std::uint32_t batch = 1; batch <= 5; ++batch) {
      if (batch == 3) writer.begin_segment();
      const std::vector<Event> events = {SpareSet{NodeId(2 * batch - 2), true},
                                         SpareSet{NodeId(2 * batch - 1), true}};
      writer.append(Instant::from_ns(batch), events);
      EXPECT_TRUE(store_.append(term_, {batch, writer.take()}));
    }
  }
  /// Returns the nodes of the events that were found.
  static Nodes nodes(const EventsFound& found) {
    Nodes nodes;
    for (const TimedEvent& event : found.events) {
      nodes.push_back(std::get<SpareSet>(event.what).node.value());
    }
    return nodes;
  }
  /// Returns the pages of events of nodes that `wanted` accepts.
  std::vector<Nodes> pages(std::size_t count, const std::function<bool(std::uint32_t)>& wanted) {
    EventsAsked asked{.wanted =
                          [&](const TimedEvent& event) {
                            return wanted(std::get<SpareSet>(event.what).node.value());
                          },
                      .from = std::nullopt,
                      .count = count};
    std::vector<Nodes> pages;
    do {
      const Result<EventsFound> found = read_events(store_, asked);
      EXPECT_TRUE(found) << found.error().text();
      pages.push_back(nodes(*found));
      asked.from = found->next;
    } while (asked.from && pages.size() < 20);
    return pages;
  }
  [[nodiscard]] Nodes newest(std::size_t count) {
    const EventsAsked asked{.wanted = [](const TimedEvent&) { return true; },
                            .from = std::nullopt,
                            .count = count,
                            .newest = true};
    const Result<EventsFound> found = read_events(store_, asked);
    EXPECT_TRUE(found && !found->next);
    return nodes(*found);
  }

  MemoryDisk disk_;
  MemoryStore store_{disk_};
  const StoreTerm term_ = store_.claim().value();
};

TEST_F(EventHistoryTest, PagesHaveEachEventOnce) {
  const auto any = [](std::uint32_t) { return true; };
  EXPECT_EQ(pages(3, any), (std::vector<Nodes>{{0, 1, 2}, {3, 4, 5}, {6, 7, 8}, {9}}));
  EXPECT_EQ(pages(4, any), (std::vector<Nodes>{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}}));
  EXPECT_EQ(pages(10, any).size(), 1U);
}

TEST_F(EventHistoryTest, PagesHaveTheWantedEventsOnly) {
  const auto odd = [](std::uint32_t node) { return node % 2 == 1; };
  EXPECT_EQ(pages(2, odd), (std::vector<Nodes>{{1, 3}, {5, 7}, {9}}));
  EXPECT_EQ(pages(2, [](std::uint32_t) { return false; }), std::vector<Nodes>{Nodes()});
}

TEST_F(EventHistoryTest, TheNewestAreTheLast) {
  EXPECT_EQ(newest(3), (Nodes{7, 8, 9}));
  EXPECT_EQ(newest(0), Nodes());
  EXPECT_EQ(newest(20).size(), 10U);
}

TEST_F(EventHistoryTest, APlaceIsABatchAndTheEventsToSkipInIt) {
  const Result<EventsFound> first = read_events(
      store_, {.wanted = [](const TimedEvent&) { return true; }, .from = std::nullopt, .count = 1});
  ASSERT_TRUE(first && first->next);
  EXPECT_EQ(first->next->batch, 1U);
  EXPECT_EQ(first->next->skip, 1U);
  EventsAsked later{.wanted = [](const TimedEvent&) { return true; }, .from = first->next};
  later.count = 2;
  const Result<EventsFound> second = read_events(store_, later);
  ASSERT_TRUE(second && second->next);
  EXPECT_EQ(nodes(*second), (Nodes{1, 2}));
}

}  // namespace
}  // namespace orrery
