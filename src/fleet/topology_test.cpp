#include "fleet/topology.hpp"

#include <gtest/gtest.h>

#include "fleet/fleet_test.hpp"

namespace orrery {
namespace {

/// Returns 20 pods of 16 DGX H100 on one fabric.
Topology joined_by(const std::string& fabric) {
  return built(
      one_hall("    - count: 20\n      racks:\n      - count: 4\n        cooling: "
               "in-row-or-dense-air\n        nodes: [{type: dgx-h100, count: 4}]\n",
               "  fabrics: [{type: ib-ndr, " + fabric + "}]\n"));
}

std::vector<std::uint32_t> sizes(std::span<const NodeRun> runs) {
  std::vector<std::uint32_t> counts;
  for (const NodeRun& run : runs) counts.push_back(run.count);
  return counts;
}

using Sizes = std::vector<std::uint32_t>;

/// Expects that the runs cover the fabric's nodes in order, and that neighbours share a run exactly
/// when they share the tier.
void expect_runs_right(const Topology& topology, FabricId fabric, NetworkTier tier) {
  const FabricInstance& instance = topology.fabrics()[fabric.value()];
  std::uint32_t at = 0;
  for (const NodeRun& run : network_groups(topology, fabric, tier)) {
    ASSERT_LE(at + run.count, instance.nodes.size());
    for (std::uint32_t i = 0; i < run.count; ++i) {
      EXPECT_EQ(instance.nodes[at + i].value(), run.first.value() + i);
      EXPECT_LE(instance.graph.tier_between(at, at + i), tier);
    }
    at += run.count;
    if (at == instance.nodes.size()) break;
    const bool neighbours = instance.nodes[at].value() == run.first.value() + run.count;
    EXPECT_TRUE(!neighbours || instance.graph.tier_between(at - 1, at) > tier);
  }
  EXPECT_EQ(at, instance.nodes.size());
}

void expect_runs_right(const Topology& topology) {
  for (std::uint32_t i = 0; i < topology.fabrics().size(); ++i) {
    expect_runs_right(topology, FabricId(i), NetworkTier::kLeaf);
    expect_runs_right(topology, FabricId(i), NetworkTier::kSpine);
  }
}

// A leaf of radix 64 has 32 ports down, 4 nodes of 8 NICs; a pod 32 leaves.
TEST(NetworkGroups, OfAFatTreeAreLeavesAndPods) {
  const Topology topology = joined_by("topology: fat-tree");
  EXPECT_EQ(sizes(network_groups(topology, FabricId(0), NetworkTier::kLeaf)), Sizes(80, 4));
  EXPECT_EQ(sizes(network_groups(topology, FabricId(0), NetworkTier::kSpine)),
            (Sizes{128, 128, 64}));
  expect_runs_right(topology);
}

// A unit has a leaf for each rail, so as many nodes as a leaf has ports down; a pod 4 units.
TEST(NetworkGroups, OfARailOptimisedTreeAreUnitsAndPods) {
  const Topology topology = joined_by("topology: rail-optimized-fat-tree");
  EXPECT_EQ(sizes(network_groups(topology, FabricId(0), NetworkTier::kLeaf)), Sizes(10, 32));
  EXPECT_EQ(sizes(network_groups(topology, FabricId(0), NetworkTier::kSpine)),
            (Sizes{128, 128, 64}));
  expect_runs_right(topology);
}

TEST(NetworkGroups, OfADragonflyAreRoutersAndGroups) {
  const Topology topology = joined_by(
      "topology: dragonfly, dragonfly: {terminals: 16, routers_per_group: 4, "
      "global_links_per_router: 10}");
  EXPECT_EQ(sizes(network_groups(topology, FabricId(0), NetworkTier::kLeaf)), Sizes(160, 2));
  EXPECT_EQ(sizes(network_groups(topology, FabricId(0), NetworkTier::kSpine)), Sizes(40, 8));
  expect_runs_right(topology);
}

// Six H100 nodes under leaves of four, with a node of another type after every second.
TEST(NetworkGroups, AreCutWhereOtherNodesStandBetween) {
  const Topology topology = built(
      one_hall("    - racks:\n      - count: 3\n        cooling: in-row-or-dense-air\n        "
               "nodes: [{type: dgx-h100, count: 2}, {type: mi300x-oam-8}]\n",
               "  fabrics: [{type: ib-ndr, topology: fat-tree, node_types: [dgx-h100]}]\n"));
  const auto leaves = network_groups(topology, FabricId(0), NetworkTier::kLeaf);
  EXPECT_EQ(std::vector(leaves.begin(), leaves.end()),
            (std::vector<NodeRun>{{NodeId(0), 2}, {NodeId(3), 2}, {NodeId(6), 2}}));
  expect_runs_right(topology);
}

}  // namespace
}  // namespace orrery
