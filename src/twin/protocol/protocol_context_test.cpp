#include "twin/protocol/protocol_context.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace orrery {
namespace {

/// How often a message arrives, and until when.
struct Arrivals {
  int count = 0;
  Instant last;
};

Arrivals arrivals_under(const NetworkRules& network) {
  ProtocolContext context({.network = network}, 1, {});
  Arrivals arrivals;
  context.transmit([&] { ++arrivals.count; });
  VirtualTime& time = context.time();
  while (time.next() != Instant::max()) {
    time.move_to(time.next());
    time.run_next();
  }
  arrivals.last = time.now();
  return arrivals;
}

TEST(ProtocolContext, AMessageArrivesOnceTwiceOrNotAtAll) {
  const Arrivals once = arrivals_under({.delay_max = Duration::milliseconds(2)});
  EXPECT_EQ(once.count, 1);
  EXPECT_GT(once.last, Instant());
  EXPECT_LT(once.last, Instant() + Duration::milliseconds(3));
  EXPECT_EQ(arrivals_under({.doubling = 1}).count, 2);
  EXPECT_EQ(arrivals_under({.loss = 1}).count, 0);
  EXPECT_EQ(arrivals_under({.loss = 1, .doubling = 1}).count, 1) << "one of two is lost";
}

TEST(ProtocolContext, TheFirstBrokenPromiseIsKept) {
  std::vector<std::string> lines;
  ProtocolContext context({}, 1, [&](Instant, const std::string& line) { lines.push_back(line); });
  EXPECT_EQ(context.failure(), "");
  context.wrong("a");
  context.wrong("b");
  context.note("c");
  EXPECT_EQ(context.failure(), "1970-01-01T00:00:00Z: a");
  EXPECT_EQ(lines, (std::vector<std::string>{"BROKEN: a", "c"}));
}

TEST(ProtocolContext, AReliableWorldKeepsItsPeriodsAndItsPolicy) {
  ProtocolContext context({.network = {.loss = 0.5, .doubling = 0.5, .stray = 0.5},
                           .disk = {.slow_write = 0.5},
                           .crash = 0.5,
                           .ignores_term = 0.5,
                           .beat = Duration::seconds(3),
                           .lease = Duration::seconds(7),
                           .policy = "sjf"},
                          1, {});
  context.make_reliable();
  const ProtocolRules& rules = context.rules();
  EXPECT_EQ(rules.network.loss + rules.network.doubling + rules.network.stray, 0);
  EXPECT_EQ(rules.disk.slow_write + rules.crash + rules.ignores_term, 0);
  EXPECT_EQ(rules.beat, Duration::seconds(3));
  EXPECT_EQ(rules.lease, Duration::seconds(7));
  EXPECT_EQ(rules.policy, "sjf");
}

}  // namespace
}  // namespace orrery
