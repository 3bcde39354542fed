// scheduler/place/place_dragonfly_test.cpp - gangs keep to the parts of a network: dragonfly
// groups, leaf units, rails.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "base/numbers/rng.hpp"
#include "fleet/fleet.hpp"
#include "fleet/fleet_test.hpp"
#include "scheduler/place/placer.hpp"

namespace orrery {
namespace {

/// Racks of four DGX H100 in one pod on one fabric.
Topology on_fabric(int racks, const std::string& fabric) {
  return built(one_hall("    - name: su\n      racks: [{count: " + std::to_string(racks) +
                        ", cooling: in-row-or-dense-air, nodes: [{type: dgx-h100, count: 4}]}]\n") +
               "  fabrics:\n  - {type: roce-400-th5, " + fabric + "}\n");
}

/// `groups` groups of four routers of two nodes: two racks a group.
Topology dragonfly(int groups) {
  return on_fabric(2 * groups,
                   "topology: dragonfly, dragonfly: {terminals: 16, routers_per_group: 4, "
                   "global_links_per_router: 4}");
}

constexpr std::uint32_t kGroupNodes = 8;

struct Site {
  explicit Site(Topology topology)
      : fleet(std::move(topology)), tree(fleet.topology()), placer(tree) {}

  [[nodiscard]] GangRequest nodes(std::uint32_t count) const {
    return {.type = FleetTypeId(0), .devices = count * 8, .node_devices = 8};
  }
  [[nodiscard]] AllocationOrRefusal place(const GangRequest& request) {
    return placer.place(fleet.view(), request);
  }
  /// Leaves only the first `count` nodes of a run free.
  void leave(std::uint32_t first, std::uint32_t nodes, std::uint32_t count) {
    for (std::uint32_t i = 0; i < nodes; ++i) {
      fleet.set_free(NodeId(first + i), i < count ? 0xff : 0);
    }
  }

  Fleet fleet;
  PlaceTree tree;
  Placer placer;
};

std::set<std::uint32_t> runs_of(const Allocation& gang, std::uint32_t run_nodes) {
  std::set<std::uint32_t> runs;
  for (const NodeDevices& at : gang.ranks) runs.insert(at.node.value() / run_nodes);
  return runs;
}

std::vector<std::uint32_t> nodes_in(const Allocation& gang) {
  std::vector<std::uint32_t> nodes;
  for (const NodeDevices& at : gang.ranks) nodes.push_back(at.node.value());
  return nodes;
}

TEST(PlaceOnADragonfly, KeepsAGangInOneGroupWhenItFits) {
  Site site(dragonfly(4));
  EXPECT_EQ(runs_of(*site.place(site.nodes(8)), kGroupNodes).size(), 1U);
  site.leave(0, 8, 3);
  site.leave(8, 8, 6);
  site.leave(16, 8, 5);
  site.leave(24, 8, 7);
  // More racks have free nodes elsewhere; the tightest group that holds all five has just five.
  EXPECT_EQ(runs_of(*site.place(site.nodes(5)), kGroupNodes), (std::set<std::uint32_t>{2}));
  EXPECT_EQ(runs_of(*site.place(site.nodes(7)), kGroupNodes), (std::set<std::uint32_t>{3}));
}

TEST(PlaceOnADragonfly, RefusesAGroupThatIsRequiredAndNotThere) {
  Site site(dragonfly(3));
  for (const std::uint32_t group : {0U, 8U, 16U}) site.leave(group, 8, 6);
  GangRequest request = site.nodes(8);
  EXPECT_TRUE(site.place(request));
  request.required = TopologyLevel::kGroup;
  const AllocationOrRefusal refused = site.place(request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), (Refusal{RejectionKind::kBusy, TopologyLevel::kGroup, 16}));
  request.devices = 48;
  const AllocationOrRefusal placed = site.place(request);
  ASSERT_TRUE(placed);
  EXPECT_EQ(runs_of(*placed, kGroupNodes).size(), 1U);
}

/// The fewest runs whose free nodes add up to the gang's.
std::size_t fewest_runs(const FleetView& view, std::uint32_t run_nodes, std::uint32_t wanted) {
  std::vector<std::uint32_t> free;
  for (std::uint32_t n = 0; n < view.topology().node_count(); ++n) {
    if (n % run_nodes == 0) free.push_back(0);
    if (view.node(NodeId(n)).available() == 8) ++free.back();
  }
  std::sort(free.rbegin(), free.rend());
  std::size_t runs = 0;
  for (std::uint32_t have = 0; have < wanted; ++runs) have += free[runs];
  return runs;
}

TEST(PlaceOnADragonfly, TakesAsFewGroupsAsCanBe) {
  Rng rng(31);
  Site site(dragonfly(9));
  int several = 0;
  for (int i = 0; i < 400; ++i) {
    std::uint32_t free = 0;
    for (std::uint32_t n = 0; n < 72; ++n) {
      const bool busy = rng.below(100) < 20 + static_cast<std::uint64_t>(i) % 60;
      site.fleet.set_free(NodeId(n), busy ? 0x7f : 0xff);
      if (!busy) ++free;
    }
    const std::uint32_t wanted = 2 + static_cast<std::uint32_t>(rng.below(30));
    const AllocationOrRefusal placed = site.place(site.nodes(wanted));
    ASSERT_EQ(placed.has_value(), free >= wanted);
    if (!placed) continue;
    const std::size_t groups = fewest_runs(site.fleet.view(), kGroupNodes, wanted);
    ASSERT_EQ(runs_of(*placed, kGroupNodes).size(), groups) << i;
    ASSERT_EQ(placed->ranks.size(), wanted);
    if (groups > 1) ++several;
  }
  EXPECT_GT(several, 100);
}

TEST(PlaceOnADragonfly, KeepsToRacksWhereGroupsCrossThem) {
  // Groups of 6 nodes over racks of 4: no place of the tree, so that a gang of a rack stays in it.
  Site site(on_fabric(6,
                      "topology: dragonfly, dragonfly: {terminals: 16, routers_per_group: 3, "
                      "global_links_per_router: 4}"));
  EXPECT_EQ(runs_of(*site.place(site.nodes(4)), 4).size(), 1U);
  EXPECT_EQ(site.place(site.nodes(24))->ranks.size(), 24U);
}

TEST(PlaceOnLeaves, KeepsAGangUnderOneLeafUnit) {
  Site site(on_fabric(8, "topology: rail-optimized-fat-tree, unit_nodes: 8"));
  GangRequest request = site.nodes(6);
  request.required = TopologyLevel::kLeaf;
  for (const std::uint32_t unit : {0U, 16U}) site.leave(unit, 8, 5);
  EXPECT_EQ(runs_of(*site.place(request), 8), (std::set<std::uint32_t>{1}));
  for (const std::uint32_t unit : {8U, 24U}) site.leave(unit, 8, 4);
  EXPECT_EQ(site.place(request).error(), (Refusal{RejectionKind::kBusy, TopologyLevel::kLeaf, 8}));
  // Not required: across leaves, as few as can be.
  EXPECT_EQ(runs_of(*site.place(site.nodes(9)), 8).size(), 2U);
}

TEST(PlaceOnLeaves, PrefersARackToALeafAndALeafToAPod) {
  Site site(on_fabric(8, "topology: rail-optimized-fat-tree, unit_nodes: 8"));
  EXPECT_EQ(runs_of(*site.place(site.nodes(4)), 4).size(), 1U);
  for (std::uint32_t rack = 0; rack < 8; ++rack) site.leave(rack * 4, 4, rack < 6 ? 2 : 3);
  // Racks of 2 or 3 are left: a leaf with two of the former holds 4 and is tighter.
  EXPECT_EQ(nodes_in(*site.place(site.nodes(4))), (std::vector<std::uint32_t>{0, 1, 4, 5}));
  EXPECT_EQ(runs_of(*site.place(site.nodes(6)), 8), (std::set<std::uint32_t>{3}));
}

TEST(PlaceOnRails, TakesTheSamePositionsOfEveryNode) {
  Site site(on_fabric(4, "topology: rail-optimized-fat-tree, unit_nodes: 16"));
  GangRequest request{.type = FleetTypeId(0), .devices = 24, .node_devices = 4};
  request.rails_aligned = true;
  // Positions 0 to 3 are free on five nodes only, 4 to 7 on six.
  for (std::uint32_t n = 0; n < 16; ++n) {
    site.fleet.set_free(NodeId(n), n < 5 ? 0x0f : n < 11 ? 0xf7 : 0);
  }
  const AllocationOrRefusal placed = site.place(request);
  ASSERT_TRUE(placed);
  EXPECT_EQ(placed->devices(), 24U);
  for (const NodeDevices& at : placed->ranks) EXPECT_EQ(at.devices, 0xf0U);
  request.devices = 28;
  EXPECT_FALSE(site.place(request));
  request.rails_aligned = false;
  EXPECT_TRUE(site.place(request));
}

TEST(PlaceOnRails, PutsASmallerLastNodeOnTheFirstOfThem) {
  Site site(on_fabric(4, "topology: rail-optimized-fat-tree, unit_nodes: 16"));
  GangRequest request{.type = FleetTypeId(0), .devices = 10, .node_devices = 4};
  request.rails_aligned = true;
  for (std::uint32_t n = 0; n < 16; ++n) site.fleet.set_free(NodeId(n), 0);
  site.fleet.set_free(NodeId(3), 0xf0);
  site.fleet.set_free(NodeId(6), 0xf2);
  site.fleet.set_free(NodeId(9), 0x37);
  const AllocationOrRefusal placed = site.place(request);
  ASSERT_TRUE(placed);
  EXPECT_EQ(placed->ranks,
            (std::vector<NodeDevices>{{NodeId(3), 0xf0}, {NodeId(6), 0xf0}, {NodeId(9), 0x30}}));
  site.fleet.set_free(NodeId(9), 0xc7);  // two of the rails, not the first two
  EXPECT_FALSE(site.place(request));
}

TEST(PlaceOnRails, KeepsANodeToItselfWhenExclusive) {
  Site site(on_fabric(4, "topology: rail-optimized-fat-tree, unit_nodes: 16"));
  GangRequest request{.type = FleetTypeId(0), .devices = 8, .node_devices = 4};
  request.rails_aligned = true;
  request.exclusive = TopologyLevel::kNode;
  for (std::uint32_t n = 0; n < 16; ++n) site.fleet.set_free(NodeId(n), n % 5 == 0 ? 0xff : 0x7f);
  const AllocationOrRefusal placed = site.place(request);
  ASSERT_TRUE(placed);
  for (const NodeDevices& at : placed->ranks) EXPECT_EQ(at.node.value() % 5, 0U);
  EXPECT_EQ(placed->idle.size(), placed->ranks.size());
}

TEST(PlaceOnRails, AlwaysHoldsTheSamePositionsOfFreeDevices) {
  Rng rng(32);
  Site site(on_fabric(4, "topology: rail-optimized-fat-tree, unit_nodes: 8"));
  int placed_count = 0;
  int refused = 0;
  for (int i = 0; i < 500; ++i) {
    std::map<std::uint64_t, std::uint32_t> with;
    for (std::uint32_t n = 0; n < 16; ++n) {
      const std::uint64_t mask = rng.below(256) | rng.below(256);
      site.fleet.set_free(NodeId(n), mask);
      for (const std::uint64_t rails : {0x0fULL, 0xf0ULL}) with[rails] += (mask & rails) == rails;
    }
    GangRequest request{.type = FleetTypeId(0), .devices = 0, .node_devices = 4};
    const auto units = 2 + static_cast<std::uint32_t>(rng.below(6));
    request.devices = units * 4;
    request.rails_aligned = true;
    const AllocationOrRefusal placed = site.place(request);
    ASSERT_EQ(placed.has_value(), std::max(with[0x0f], with[0xf0]) >= units) << i;
    ++(placed ? placed_count : refused);
    if (!placed) continue;
    ASSERT_EQ(placed->ranks.size(), units);
    for (const NodeDevices& at : placed->ranks) {
      ASSERT_EQ(at.devices, placed->ranks.front().devices);
      ASSERT_EQ(site.fleet.view().node(at.node).free_mask & at.devices, at.devices);
    }
  }
  EXPECT_GT(placed_count, 50);
  EXPECT_GT(refused, 50);
}

}  // namespace
}  // namespace orrery
