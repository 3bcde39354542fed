#include "control/closed_times.hpp"

#include <gtest/gtest.h>

#include "control/scripted_cluster_test.hpp"

namespace orrery {
namespace {

const Instant kNow = Instant() + Duration::hours(100);
const Instant kSoon = kNow + Duration::hours(1);
const Instant kLater = kNow + Duration::hours(2);

class ClosedTimesTest : public testing::Test {
 protected:
  void lend(std::uint32_t node, Instant before, Instant until) {
    closed_.lend(NodeId(node), before, until, topology_);
  }
  /// "FROM:NODES" of each closure, the time in hours from now.
  [[nodiscard]] std::string list() const {
    std::string text;
    for (const Closure& closure : closed_.list()) {
      text += std::to_string((closure.from - kNow).count_ns() / Duration::hours(1).count_ns());
      text += closure.loan ? "h" : "w";
      for (const NodeDevices& at : closure.nodes) text += std::to_string(at.node.value());
      text += " ";
    }
    return text;
  }

  ScriptedCluster cluster_;
  const Topology& topology_ = cluster_.topology();
  ClosedTimes closed_;
};

TEST_F(ClosedTimesTest, ListsLoansInOrderOfTheirEnds) {
  lend(2, Instant::max(), kLater);
  lend(1, Instant::max(), kSoon);
  lend(0, Instant::max(), kLater);
  EXPECT_EQ(list(), "1h1 2h02 ");
  EXPECT_EQ(closed_.list()[0].nodes[0].devices, 0xffu);
  EXPECT_EQ(closed_.list()[0].to, Instant::max());
}

TEST_F(ClosedTimesTest, MovesANodeWhoseLoanEndsAtAnotherTime) {
  lend(0, Instant::max(), kSoon);
  lend(1, Instant::max(), kSoon);
  lend(0, kSoon, kLater);
  EXPECT_EQ(list(), "1h1 2h0 ");
  lend(1, kSoon, Instant::max());
  EXPECT_EQ(list(), "2h0 ");
  lend(0, kLater, kLater);
  EXPECT_EQ(list(), "2h0 ");
}

TEST_F(ClosedTimesTest, KeepsLoansWhenWindowsChange) {
  lend(0, Instant::max(), kLater);
  closed_.set(1, {{NodeId(3)}, kSoon, kLater, "fans"}, topology_);
  EXPECT_EQ(list(), "1w3 2h0 ");
  EXPECT_TRUE(closed_.in_window(NodeId(3), kSoon));
  EXPECT_FALSE(closed_.in_window(NodeId(3), kNow));
  EXPECT_FALSE(closed_.in_window(NodeId(0), kLater)) << "the end of a loan is no window";
  closed_.set(1, {}, topology_);
  EXPECT_EQ(list(), "2h0 ");
}

}  // namespace
}  // namespace orrery
