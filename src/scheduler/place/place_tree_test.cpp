#include "scheduler/place/place_tree.hpp"

#include "fleet/fleet_test.hpp"

namespace orrery {
namespace {

TEST(PlaceTree, ALeafUnderPartsOfTwoRacksIsLeftOut) {
  // Racks of 18 nodes, leaves of 32: of the four racks only two pairs of half racks would share
  // one.
  const Topology topology = built(
      one_hall("    - name: su\n      racks:\n      - count: 3\n        cooling: "
               "direct-liquid-hybrid\n        nodes: [{type: gb200-nvl72-tray, count: 18}]\n") +
      "  fabrics:\n  - {type: ib-ndr, topology: rail-optimized-fat-tree, unit_nodes: 32}\n");
  const PlaceTree tree(topology);
  EXPECT_FALSE(tree.has(TopologyLevel::kLeaf));
  EXPECT_TRUE(tree.has(TopologyLevel::kScaleUp));
  std::uint32_t racks = 0;
  for (const Place& place : tree.places()) {
    if (!place.is(TopologyLevel::kRack)) continue;
    ++racks;
    EXPECT_EQ(place.nodes.count, 18u);
    EXPECT_TRUE(place.is(TopologyLevel::kScaleUp));
  }
  EXPECT_EQ(racks, 3u);
}

TEST(PlaceTree, ASiteWithoutNodesIsNoPlaceAndTheOthersKeepTheirNumbers) {
  const auto site = [](const std::string& name, int count) {
    return "- name: " + name + "\n  halls: [{pods: [{racks: [{nodes: [{type: dgx-h100, count: " +
           std::to_string(count) + "}]}]}]}]\n";
  };
  const std::string head = "apiVersion: orrery/v1\nkind: Fleet\nname: f\nsites:\n";
  const Topology topology = built(head + site("a", 1) + site("b", 0) + site("c", 2) + site("d", 0));
  const PlaceTree tree(topology);
  EXPECT_EQ(tree[tree.around(NodeId(0))].site, 0);
  EXPECT_EQ(tree[tree.around(NodeId(2))].site, 2);
  EXPECT_EQ(tree.places().size(),
            PlaceTree(built(head + site("a", 1) + site("c", 2))).places().size());
}

}  // namespace
}  // namespace orrery
