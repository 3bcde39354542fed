#include "twin/world/durable_log.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

Instant at(std::int64_t seconds) { return Instant() + Duration::seconds(seconds); }

Event spare(std::uint32_t node) { return SpareSet{NodeId(node), true}; }

/// The nodes of events as spare() makes them, by time in seconds.
std::vector<std::pair<std::int64_t, std::uint32_t>> nodes_of(
    const Result<std::vector<TimedEvent>>& events) {
  std::vector<std::pair<std::int64_t, std::uint32_t>> nodes;
  EXPECT_TRUE(events) << (events ? "" : events.error().text());
  if (!events) return nodes;
  for (const TimedEvent& each : *events) {
    nodes.emplace_back((each.at - Instant()).count_ns() / 1'000'000'000,
                       std::get<SpareSet>(each.what).node.value());
  }
  return nodes;
}

using Nodes = std::vector<std::pair<std::int64_t, std::uint32_t>>;

TEST(DurableLog, EachControllerContinuesTheHistoryOfTheOneBefore) {
  DurableLog log;
  EXPECT_EQ(nodes_of(log.recover()), Nodes{});
  log.commit(at(1), std::vector{spare(1)});
  const std::uint64_t one = log.history_hash();
  log.commit(at(2), std::vector{spare(2), spare(3)});
  EXPECT_NE(log.history_hash(), one);
  const std::uint64_t three = log.history_hash();
  EXPECT_EQ(nodes_of(log.recover()), (Nodes{{1, 1}, {2, 2}, {2, 3}}));
  EXPECT_EQ(log.history_hash(), three) << "a start adds no event";
  log.commit(at(4), std::vector{spare(4)});
  EXPECT_EQ(log.events(), 4U);
  EXPECT_EQ(nodes_of(log.recover()), (Nodes{{1, 1}, {2, 2}, {2, 3}, {4, 4}}));
}

TEST(DurableLog, AnInputWithoutEventsLeavesNoTrace) {
  DurableLog log;
  ASSERT_TRUE(log.recover());
  const std::uint64_t none = log.history_hash();
  log.commit(at(1), {});
  EXPECT_EQ(log.history_hash(), none);
  EXPECT_EQ(log.events(), 0U);
}

TEST(DurableLog, ATornInputIsLostAsAWhole) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng = Rng::stream(seed, "tear");
    DurableLog log;
    ASSERT_TRUE(log.recover());
    log.commit(at(1), std::vector{spare(1)});
    const std::uint64_t before = log.history_hash();
    log.tear(at(2), std::vector{spare(2), spare(3)}, rng);
    EXPECT_EQ(nodes_of(log.recover()), (Nodes{{1, 1}}));
    EXPECT_EQ(log.history_hash(), before);
    log.commit(at(3), std::vector{spare(4)});
    EXPECT_EQ(nodes_of(log.recover()), (Nodes{{1, 1}, {3, 4}}));
  }
}

}  // namespace
}  // namespace orrery
