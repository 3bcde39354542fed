// fleet/network/fabric_test.cpp - a network small enough to count by hand, and the misuse that ends
// it.
#include "fleet/network/fabric.hpp"

#include <gtest/gtest.h>

#include <utility>

#include "fleet/network/fabric_audit.hpp"

namespace orrery {
namespace {

constexpr BytesPerSecond kNic{50e9};

SwitchLink link(std::uint32_t lower, std::uint32_t upper, std::uint16_t cables) {
  return {SwitchIndex(lower), SwitchIndex(upper), cables};
}

/// Leaves 0, 1, 2 (nodes 0 and 1 on leaf 0, 2 on 1, 3 on 2), spines 3 (of leaves 0, 1) and 4 (of
/// leaf 2), core 5.
FabricParts small_parts() {
  FabricParts parts;
  parts.kind = NetworkKind::kFatTree;
  parts.nodes = 4;
  parts.ports_per_node = 1;
  parts.port_bandwidth = kNic;
  parts.cable_bandwidth = kNic * 2;
  parts.switches = {{.tier = 0, .group = 0}, {.tier = 0, .group = 1}, {.tier = 0, .group = 2},
                    {.tier = 1, .group = 0}, {.tier = 1, .group = 1}, {.tier = 2}};
  parts.leaf_of_port = {SwitchIndex(0), SwitchIndex(0), SwitchIndex(1), SwitchIndex(2)};
  parts.links = {link(0, 3, 1), link(1, 3, 1), link(2, 4, 1), link(3, 5, 1), link(4, 5, 2)};
  return parts;
}

TEST(Fabric, CountsSwitchesAndCablesByTier) {
  const Fabric fabric(small_parts());
  EXPECT_EQ(fabric.switches(0), 3U);
  EXPECT_EQ(fabric.switches(1), 2U);
  EXPECT_EQ(fabric.switches(2), 1U);
  EXPECT_EQ(fabric.cables(0), 3U);
  EXPECT_EQ(fabric.cables(1), 3U);
  EXPECT_EQ(fabric.link_count(), 9U);
  EXPECT_EQ(FabricAudit(fabric, 3).run(), "");
}

TEST(Fabric, NumbersPortLinksFirstThenSwitchLinksInOrder) {
  const Fabric fabric(small_parts());
  EXPECT_EQ(fabric.link_of_port({3, 0}), FabricLinkId(3));
  EXPECT_TRUE(fabric.is_port_link(FabricLinkId(3)));
  EXPECT_FALSE(fabric.is_port_link(FabricLinkId(4)));
  EXPECT_EQ(fabric.port_of(FabricLinkId(2)), (FabricPort{2, 0}));
  EXPECT_EQ(fabric.switch_link(FabricLinkId(4)), link(0, 3, 1));
  EXPECT_EQ(fabric.switch_link(FabricLinkId(8)), link(4, 5, 2));
  EXPECT_EQ(fabric.bandwidth(FabricLinkId(3)), kNic);
  EXPECT_EQ(fabric.bandwidth(FabricLinkId(8)), kNic * 4);
}

TEST(Fabric, ListsTheUplinksOfASwitch) {
  const Fabric fabric(small_parts());
  const Fabric::Uplinks up = fabric.uplinks(SwitchIndex(4));
  EXPECT_EQ(up.first, FabricLinkId(8));
  ASSERT_EQ(up.uppers.size(), 1U);
  EXPECT_EQ(up.uppers[0], SwitchIndex(5));
  EXPECT_EQ(up.cables[0], 2);
  EXPECT_TRUE(fabric.uplinks(SwitchIndex(5)).uppers.empty());
}

TEST(Fabric, TellsHowFarUpTrafficMustClimb) {
  const Fabric fabric(small_parts());
  EXPECT_EQ(fabric.tier_between(1, 1), NetworkTier::kNode);
  EXPECT_EQ(fabric.tier_between(0, 1), NetworkTier::kLeaf);
  EXPECT_EQ(fabric.tier_between(0, 2), NetworkTier::kSpine);
  EXPECT_EQ(fabric.tier_between(3, 1), NetworkTier::kCore);
}

TEST(Fabric, BisectionIsTheLeastCutOfItsTiers) {
  // Half of 4 NICs, of 3 double leaf cables, of 3 double spine cables.
  EXPECT_EQ(Fabric(small_parts()).bisection(), kNic * 2);
  FabricParts thin = small_parts();
  thin.cable_bandwidth = kNic;
  EXPECT_EQ(Fabric(std::move(thin)).bisection(), kNic * 1.5);
}

TEST(Fabric, OversubscriptionIsThatOfTheWorstSwitch) {
  const Fabric fabric(small_parts());
  EXPECT_DOUBLE_EQ(fabric.oversubscription(0), 1);  // leaf 0: two NICs over one double cable
  EXPECT_DOUBLE_EQ(fabric.oversubscription(1), 2);  // spine 3: two cables over one
}

TEST(Fabric, NodesWithoutANetworkReachNobody) {
  FabricParts parts;
  parts.nodes = 3;
  const Fabric fabric(std::move(parts));
  EXPECT_EQ(fabric.kind(), NetworkKind::kUnconnected);
  EXPECT_EQ(fabric.node_count(), 3U);
  EXPECT_EQ(fabric.tier_between(0, 0), NetworkTier::kNode);
  EXPECT_EQ(fabric.tier_between(0, 2), NetworkTier::kNone);
  EXPECT_EQ(fabric.bisection(), BytesPerSecond(0));
  EXPECT_EQ(fabric.link_count(), 0U);
  EXPECT_DOUBLE_EQ(fabric.oversubscription(0), 1);
}

TEST(Fabric, NodesUnderTwoLeavesWithoutSpinesReachNobody) {
  FabricParts parts = small_parts();
  parts.links.clear();
  const Fabric fabric(std::move(parts));
  EXPECT_EQ(fabric.tier_between(0, 1), NetworkTier::kLeaf);
  EXPECT_EQ(fabric.tier_between(0, 2), NetworkTier::kNone);
}

TEST(FabricAudit, FindsASwitchWithTooFewPortsAndAPlaneInPieces) {
  const Fabric small(small_parts());
  EXPECT_EQ(FabricAudit(small, 2).run(), "switch 0 uses 3 ports of 2");
  FabricParts parts = small_parts();
  parts.links.pop_back();
  const Fabric cut(std::move(parts));
  EXPECT_EQ(FabricAudit(cut, 3).run(), "a plane in pieces");
}

TEST(Fabric, HasNoNodesUntilBuilt) {
  EXPECT_EQ(Fabric().node_count(), 0U);
  EXPECT_EQ(Fabric().link_count(), 0U);
}

TEST(Fabric, ComparesByContent) {
  EXPECT_EQ(Fabric(small_parts()), Fabric(small_parts()));
  FabricParts other = small_parts();
  other.links.back().cables = 1;
  EXPECT_NE(Fabric(small_parts()), Fabric(std::move(other)));
}

TEST(FabricDeathTest, RefusesPartsThatBreakItsInvariants) {
  FabricParts unordered = small_parts();
  std::swap(unordered.links[0], unordered.links[1]);
  EXPECT_DEATH(Fabric{unordered}, "links stand in order");
  FabricParts twice = small_parts();
  twice.links[1] = twice.links[0];
  EXPECT_DEATH(Fabric{twice}, "each pair of switches once");
  FabricParts downward = small_parts();
  downward.links.push_back(link(5, 3, 1));
  EXPECT_DEATH(Fabric{downward}, "lower-numbered switch to a higher");
  FabricParts tiers = small_parts();
  tiers.switches[1].tier = 1;
  EXPECT_DEATH(Fabric{tiers}, "in order of tier");
  FabricParts stray = small_parts();
  stray.leaf_of_port[2] = SwitchIndex(3);
  EXPECT_DEATH(Fabric{stray}, "every port is on a leaf");
  FabricParts missing = small_parts();
  missing.leaf_of_port.pop_back();
  EXPECT_DEATH(Fabric{missing}, "every port has a place");
}

TEST(FabricDeathTest, RefusesQuestionsAboutWhatItHasNot) {
  const Fabric fabric(small_parts());
  EXPECT_DEATH(static_cast<void>(fabric.link_of_port({0, 1})), "the port exists");
  EXPECT_DEATH(static_cast<void>(fabric.switch_link(FabricLinkId(0))), "the link joins switches");
  EXPECT_DEATH(static_cast<void>(fabric.port_of(FabricLinkId(4))), "the link is a port's");
  EXPECT_DEATH(static_cast<void>(fabric.tier_between(0, 4)), "the nodes exist");
}

}  // namespace
}  // namespace orrery
