#include "fleet/rank_map.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/rng.hpp"
#include "fleet/fleet.hpp"
#include "fleet/fleet_test.hpp"

namespace orrery {
namespace {

std::vector<DeviceId> devices_of_nodes(const Topology& topology,
                                       const std::vector<std::uint32_t>& nodes) {
  std::vector<DeviceId> devices;
  for (const std::uint32_t n : nodes) {
    for (std::uint32_t i = 0; i < topology.group(NodeId(n)).devices; ++i) {
      devices.push_back(DeviceId(topology.place(NodeId(n)).first_device.value() + i));
    }
  }
  return devices;
}

TEST(RankMap, TensorParallelGroupsStayInsideTheirNode) {
  const Fleet fleet(built(small_h100()));
  const ParallelPlan plan{.tp = 4, .pp = 2, .dp = 4};
  Rng rng(1);
  std::vector<DeviceId> devices = devices_of_nodes(fleet.topology(), {3, 1, 9, 12});
  for (std::size_t i = devices.size(); i > 1; --i) std::swap(devices[i - 1], devices[rng.below(i)]);
  const auto map = map_ranks(plan, devices, fleet.view());
  ASSERT_TRUE(map) << map.error().text();
  for (std::size_t first = 0; first < map->devices.size(); first += plan.tp) {
    const NodeId node = fleet.topology().node_of(map->devices[first]);
    for (std::size_t t = 1; t < plan.tp; ++t) {
      EXPECT_EQ(fleet.topology().node_of(map->devices[first + t]), node);
    }
  }
}

TEST(RankMap, DataParallelPeersShareTheirRail) {
  const Fleet fleet(built(small_h100()));
  const ParallelPlan plan{.tp = 8, .dp = 4};
  const auto map = map_ranks(plan, devices_of_nodes(fleet.topology(), {0, 5, 6, 15}), fleet.view());
  ASSERT_TRUE(map);
  for (std::size_t rank = 0; rank < map->devices.size(); ++rank) {
    const DeviceId device = map->devices[rank];
    const NodeId node = fleet.topology().node_of(device);
    EXPECT_EQ(device.value() - fleet.topology().place(node).first_device.value(), rank % 8);
  }
}

TEST(RankMap, DoesNotDependOnTheOrderOfTheDevices) {
  const Fleet fleet(built(small_h100()));
  const ParallelPlan plan{.tp = 2, .pp = 4, .dp = 2};
  std::vector<DeviceId> devices = devices_of_nodes(fleet.topology(), {2, 7});
  const auto forward = map_ranks(plan, devices, fleet.view());
  std::reverse(devices.begin(), devices.end());
  const auto backward = map_ranks(plan, devices, fleet.view());
  ASSERT_TRUE(forward && backward);
  EXPECT_EQ(forward->devices, backward->devices);
}

TEST(RankMap, TensorParallelMaySpanTheNodesOfAnNvl72Rack) {
  const Fleet fleet(built(one_hall(
      "    - racks: [{count: 2, cooling: direct-liquid-hybrid, nodes: [{type: gb200-nvl72-tray, "
      "count: 18}]}]\n")));
  std::vector<std::uint32_t> nodes(16);
  std::iota(nodes.begin(), nodes.end(), 1);
  const auto inside =
      map_ranks({.tp = 16, .dp = 4}, devices_of_nodes(fleet.topology(), nodes), fleet.view());
  EXPECT_TRUE(inside);
  nodes.back() = 20;  // 15 nodes of one rack, one of the next
  const auto across =
      map_ranks({.tp = 16, .dp = 4}, devices_of_nodes(fleet.topology(), nodes), fleet.view());
  ASSERT_FALSE(across);
  EXPECT_EQ(across.error().kind, RejectionKind::kNever);
  EXPECT_EQ(across.error().blocking.size(), 2u);
}

TEST(RankMap, RefusesWrongNumbersAndDevicesTwice) {
  const Fleet fleet(built(small_h100()));
  const auto few =
      map_ranks({.tp = 8, .dp = 2}, devices_of_nodes(fleet.topology(), {0}), fleet.view());
  ASSERT_FALSE(few);
  EXPECT_EQ(few.error().reason, "the plan has 16 ranks, there are 8 devices");
  EXPECT_FALSE(
      map_ranks({.tp = 8, .dp = 2}, devices_of_nodes(fleet.topology(), {0, 0}), fleet.view()));
}

}  // namespace
}  // namespace orrery
