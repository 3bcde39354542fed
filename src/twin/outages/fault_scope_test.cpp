#include "twin/outages/fault_scope.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "twin/faults/failure_test.hpp"

namespace orrery {
namespace {

TEST(FaultScope, AFaultOfAnAcceleratorStrikesItsNode) {
  const Topology& fleet = supplied_fleet();
  for (std::uint32_t device = 0; device < fleet.device_count(); device += 7) {
    EXPECT_EQ(nodes_struck(fleet, DeviceId(device)), std::vector{fleet.node_of(DeviceId(device))});
  }
  EXPECT_EQ(nodes_struck(fleet, NodeId(5)), std::vector{NodeId(5)});
}

TEST(FaultScope, AFaultOfARackStrikesAllItsNodes) {
  const Topology fleet = built(racks_of_h100(3));
  std::set<NodeId> struck;
  for (std::uint32_t domain = 0; domain < fleet.domains().size(); ++domain) {
    if (fleet.domain(DomainId(domain)).level != Level::kRack) continue;
    const std::vector<NodeId> nodes = nodes_struck(fleet, DomainId(domain));
    EXPECT_EQ(nodes.size(), 4U);
    EXPECT_TRUE(std::ranges::is_sorted(nodes));
    struck.insert(nodes.begin(), nodes.end());
  }
  EXPECT_EQ(struck.size(), fleet.node_count());
}

TEST(FaultScope, ASwitchTakesItsPortsAndItsCablesWithIt) {
  const Topology& fleet = supplied_fleet();
  const FabricInstance& fabric = fleet.fabrics()[0];
  std::size_t ends = 0;  // of links, counted at switches
  for (std::uint32_t at = 0; at < fabric.graph.switches().size(); ++at) {
    const std::vector<LinkId> links =
        links_struck(fleet, SwitchPlace{FabricId(0), SwitchIndex(at)});
    EXPECT_EQ(std::set(links.begin(), links.end()).size(), links.size());
    ends += links.size();
    for (const LinkId link : links) {
      const NodeId node = node_of_port(fleet, link);
      if (node.valid()) EXPECT_TRUE(std::ranges::binary_search(fabric.nodes, node));
    }
  }
  const std::size_t ports = std::size_t{fabric.graph.node_count()} * fabric.graph.ports_per_node();
  EXPECT_EQ(ends, ports + 2 * (fabric.graph.link_count() - ports)) << "a port has one switch";
}

TEST(FaultScope, APortLinkNamesItsNode) {
  const Topology& fleet = supplied_fleet();
  const FabricInstance& fabric = fleet.fabrics()[0];
  for (std::uint32_t node = 0; node < fabric.graph.node_count(); ++node) {
    const FabricLinkId port = fabric.graph.link_of_port({node, 0});
    EXPECT_EQ(node_of_port(fleet, LinkId(fabric.first_link + port.value())), fabric.nodes[node]);
  }
}

TEST(FaultScope, WhatIsNoNodeOrLinkStrikesNone) {
  const Topology& fleet = supplied_fleet();
  EXPECT_TRUE(nodes_struck(fleet, PowerDomainId(0)).empty());
  EXPECT_TRUE(nodes_struck(fleet, LinkId(0)).empty());
  EXPECT_TRUE(links_struck(fleet, NodeId(0)).empty());
  EXPECT_EQ(links_struck(fleet, LinkId(3)), std::vector{LinkId(3)});
}

}  // namespace
}  // namespace orrery
