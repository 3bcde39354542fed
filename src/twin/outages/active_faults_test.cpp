#include "twin/outages/active_faults.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/numbers/rng.hpp"
#include "twin/faults/failure_test.hpp"
#include "twin/outages/fault_scope.hpp"

namespace orrery {
namespace {

Instant at(std::int64_t seconds) { return Instant() + Duration::seconds(seconds); }

/// A job with a gang on each list of nodes.
RunningJob on_nodes(const std::vector<std::vector<std::uint32_t>>& gangs) {
  RunningJob job;
  for (const std::vector<std::uint32_t>& nodes : gangs) {
    PlacedGang& gang = job.gangs.emplace_back();
    for (const std::uint32_t node : nodes) gang.allocation.ranks.push_back({NodeId(node), 1});
  }
  return job;
}

class ActiveFaultsTest : public testing::Test {
 protected:
  /// A fault from `from` on that is detected after a minute and over two minutes later.
  std::uint32_t strike(const ActiveFaults::Part& part, Fault fault, std::int64_t from = 0) {
    fault.at = at(from);
    fault.detection = Duration::minutes(1);
    fault.repair = Duration::minutes(2);
    const std::uint32_t index = faults_.add(fault);
    faults_.affect(part, index);
    return index;
  }

  LinkId port(std::uint32_t node, std::uint32_t port) const {
    const FabricInstance& fabric = supplied_fleet().fabrics()[0];
    return LinkId(fabric.first_link + fabric.graph.link_of_port({node, port}).value());
  }
  std::uint32_t ports() const { return supplied_fleet().fabrics()[0].graph.ports_per_node(); }

  ActiveFaults faults_{supplied_fleet()};
};

TEST_F(ActiveFaultsTest, AJobIsAsSlowAsTheSlowestOfItsNodes) {
  const RunningJob job = on_nodes({{0, 1}, {4}});
  EXPECT_EQ(faults_.slowness(job), 1);
  strike(NodeId(1), {.kind = FaultKind::kFailSlow, .slowdown = 2});
  const std::uint32_t worst = strike(NodeId(4), {.kind = FaultKind::kFailSlow, .slowdown = 3});
  strike(NodeId(7), {.kind = FaultKind::kFailSlow, .slowdown = 9});
  EXPECT_EQ(faults_.slowness(job), 3);
  EXPECT_TRUE(faults_.lift(NodeId(4), worst));
  EXPECT_FALSE(faults_.lift(NodeId(4), worst)) << "it is lifted already";
  EXPECT_EQ(faults_.slowness(job), 2);
}

TEST_F(ActiveFaultsTest, WrongResultsOfOneNodeAreThoseOfTheJob) {
  EXPECT_FALSE(faults_.corrupt_until(on_nodes({{0, 1}})));
  strike(NodeId(1), {.kind = FaultKind::kSdc}, 30);
  EXPECT_EQ(faults_.corrupt_until(on_nodes({{0, 1}})), at(90));
  EXPECT_FALSE(faults_.corrupt_until(on_nodes({{0, 2}})));
  EXPECT_EQ(faults_.stands_until(on_nodes({{1}}), at(30)), at(30)) << "it goes on computing";
}

TEST_F(ActiveFaultsTest, ADeadNodeHoldsAJobUpUntilItIsKnown) {
  strike(NodeId(0), {.kind = FaultKind::kNic}, 10);
  strike(NodeId(1), {.kind = FaultKind::kFailSlow, .slowdown = 2}, 99);
  EXPECT_EQ(faults_.stands_until(on_nodes({{0, 1}}), at(20)), at(70));
  EXPECT_EQ(faults_.stands_until(on_nodes({{1}}), at(20)), at(20));
}

TEST_F(ActiveFaultsTest, ANodeIsCutOffWhileAllItsPortsAreDead) {
  std::vector<std::uint32_t> cuts;
  for (std::uint32_t each = 0; each < ports(); ++each) {
    EXPECT_FALSE(faults_.cut_off_until(NodeId(0))) << "a port works";
    cuts.push_back(strike(port(0, each), {.kind = FaultKind::kLinkDown}, each));
  }
  EXPECT_EQ(faults_.cut_off_until(NodeId(0)), at(180)) << "when the first is back";
  EXPECT_FALSE(faults_.cut_off_until(NodeId(1)));
  EXPECT_EQ(faults_.stands_until(on_nodes({{0, 1}}), at(9)), at(180));
  EXPECT_EQ(faults_.stands_until(on_nodes({{0}}), at(9)), at(9)) << "it needs no network";
  EXPECT_TRUE(faults_.lift(port(0, 0), cuts.front()));
  EXPECT_FALSE(faults_.cut_off_until(NodeId(0)));
}

TEST_F(ActiveFaultsTest, PortsThatFlapOrAreSlowDoNotCutANodeOff) {
  for (std::uint32_t each = 0; each < ports(); ++each) {
    strike(port(0, each), {.kind = FaultKind::kLinkFlap});
    strike(port(1, each), {.kind = FaultKind::kOptics, .slowdown = 8});
  }
  EXPECT_FALSE(faults_.cut_off_until(NodeId(0)));
  EXPECT_FALSE(faults_.cut_off_until(NodeId(1)));
}

TEST_F(ActiveFaultsTest, ALinkIsKnownToBeAsBadAsTheWorstKnownFault) {
  const LinkId link = port(0, 0);
  EXPECT_EQ(faults_.known_health(link, at(0)), 1);
  strike(link, {.kind = FaultKind::kOptics, .slowdown = 4});
  const std::uint32_t down = strike(link, {.kind = FaultKind::kLinkDown}, 30);
  EXPECT_EQ(faults_.known_health(link, at(59)), 1) << "nothing is detected yet";
  EXPECT_EQ(faults_.known_health(link, at(60)), 0.25F);
  EXPECT_EQ(faults_.known_health(link, at(90)), 0);
  faults_.lift(link, down);
  EXPECT_EQ(faults_.known_health(link, at(90)), 0.25F);
}

TEST_F(ActiveFaultsTest, ASupplyIsOutWhileAFaultOfItIsKnown) {
  const std::uint32_t first = strike(PowerDomainId(0), {.kind = FaultKind::kUps});
  EXPECT_FALSE(faults_.known_out(PowerDomainId(0), at(59)));
  EXPECT_TRUE(faults_.known_out(PowerDomainId(0), at(60)));
  EXPECT_FALSE(faults_.known_out(PowerDomainId(1), at(60)));
  faults_.lift(PowerDomainId(0), first);
  EXPECT_FALSE(faults_.known_out(PowerDomainId(0), at(60)));
}

TEST_F(ActiveFaultsTest, ARepairMendsWhatWasKnownWhenItEnded) {
  strike(NodeId(0), {.kind = FaultKind::kNic});
  strike(NodeId(0), {.kind = FaultKind::kHbm}, 100);
  EXPECT_FALSE(faults_.awaits_repair(NodeId(0), at(59)));
  EXPECT_TRUE(faults_.awaits_repair(NodeId(0), at(60)));
  faults_.lift_known(NodeId(0), at(120));
  EXPECT_FALSE(faults_.awaits_repair(NodeId(0), at(120)));
  EXPECT_TRUE(faults_.awaits_repair(NodeId(0), at(160))) << "the other shows only then";
  faults_.lift_over(NodeId(0), at(279));
  EXPECT_TRUE(faults_.awaits_repair(NodeId(0), at(279)));
  faults_.lift_over(NodeId(0), at(280));
  EXPECT_FALSE(faults_.awaits_repair(NodeId(0), at(280)));
}

TEST_F(ActiveFaultsTest, AFaultIsDetectedNoSoonerThanItsHeartbeatsAreMissing) {
  const std::uint32_t index = strike(NodeId(0), {.kind = FaultKind::kHost});
  faults_.delay_detection(index, Duration::seconds(5));
  EXPECT_EQ(faults_[index].detection, Duration::minutes(1));
  faults_.delay_detection(index, Duration::minutes(3));
  EXPECT_EQ(faults_[index].detection, Duration::minutes(3));
}

TEST_F(ActiveFaultsTest, WhatWasFeltIsKeptWhenItIsOver) {
  const std::uint32_t index = strike(NodeId(0), {.kind = FaultKind::kNic});
  faults_.count_job(index);
  faults_.count_job(index);
  faults_.lift(NodeId(0), index);
  ASSERT_EQ(faults_.felt().size(), 1U);
  EXPECT_EQ(faults_.felt()[0].jobs, 2U);
  EXPECT_EQ(faults_.felt()[0].fault.kind, FaultKind::kNic);
}

TEST_F(ActiveFaultsTest, AJobOnOneNodeNeedsNoNetwork) {
  EXPECT_FALSE(spans_nodes(on_nodes({{3}, {3}})));
  EXPECT_TRUE(spans_nodes(on_nodes({{3}, {4}})));
  EXPECT_TRUE(spans_nodes(on_nodes({{3, 4}})));
}

// A fleet is as it was when all faults are lifted, in whatever order: a job on one node is slow
// while a fault that slows the node is left, and halted while one that halts it is.
TEST_F(ActiveFaultsTest, WhatIsLiftedLeavesNoTrace) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng = Rng::stream(seed, "active");
    std::vector<std::pair<ActiveFaults::Part, std::uint32_t>> placed;
    for (int i = 0; i < 40; ++i) {
      const auto node = static_cast<std::uint32_t>(rng.below(4));
      const auto nic = static_cast<std::uint32_t>(rng.below(ports()));
      const ActiveFaults::Part part = rng.below(2) == 0 ? ActiveFaults::Part(NodeId(node))
                                                        : ActiveFaults::Part(port(node, nic));
      const double slowdown = rng.below(2) == 0 ? 1 : 2;
      placed.emplace_back(part, strike(part, {.kind = FaultKind::kNic, .slowdown = slowdown}));
    }
    const auto left_on = [&](std::uint32_t node, double slowdown) {
      return std::ranges::any_of(placed, [&](const auto& each) {
        return each.first == ActiveFaults::Part(NodeId(node)) &&
               faults_[each.second].slowdown == slowdown;
      });
    };
    const RunningJob job = on_nodes({{0, 1, 2, 3}});
    EXPECT_EQ(faults_.slowness(job), 2);
    EXPECT_GE(faults_.stands_until(job, at(5)), at(60)) << "when the faults are detected";
    while (!placed.empty()) {
      const std::size_t next = rng.below(placed.size());
      EXPECT_TRUE(faults_.lift(placed[next].first, placed[next].second));
      placed.erase(placed.begin() + static_cast<std::ptrdiff_t>(next));
      for (std::uint32_t node = 0; node < 4; ++node) {
        const RunningJob one = on_nodes({{node}});
        EXPECT_EQ(faults_.slowness(one), left_on(node, 2) ? 2 : 1);
        EXPECT_EQ(faults_.stands_until(one, at(5)), left_on(node, 1) ? at(60) : at(5));
      }
    }
    EXPECT_EQ(faults_.slowness(job), 1);
    EXPECT_EQ(faults_.stands_until(job, at(5)), at(5));
  }
}

}  // namespace
}  // namespace orrery
