#include "fleet/rank_map.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/numbers/rng.hpp"
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
  const auto map = map_ranks(plan, devices, fleet.topology());
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
  const auto map =
      map_ranks(plan, devices_of_nodes(fleet.topology(), {0, 5, 6, 15}), fleet.topology());
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
  const auto forward = map_ranks(plan, devices, fleet.topology());
  std::reverse(devices.begin(), devices.end());
  const auto backward = map_ranks(plan, devices, fleet.topology());
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
      map_ranks({.tp = 16, .dp = 4}, devices_of_nodes(fleet.topology(), nodes), fleet.topology());
  EXPECT_TRUE(inside);
  nodes.back() = 20;  // 15 nodes of one rack, one of the next
  const auto across =
      map_ranks({.tp = 16, .dp = 4}, devices_of_nodes(fleet.topology(), nodes), fleet.topology());
  ASSERT_FALSE(across);
  EXPECT_EQ(across.error().kind, RejectionKind::kNever);
  EXPECT_EQ(across.error().blocking.size(), 2u);
}

TEST(RankMap, RefusesWrongNumbersAndDevicesTwice) {
  const Fleet fleet(built(small_h100()));
  const auto few =
      map_ranks({.tp = 8, .dp = 2}, devices_of_nodes(fleet.topology(), {0}), fleet.topology());
  ASSERT_FALSE(few);
  EXPECT_EQ(few.error().reason, "the plan has 16 ranks, there are 8 devices");
  EXPECT_FALSE(
      map_ranks({.tp = 8, .dp = 2}, devices_of_nodes(fleet.topology(), {0, 0}), fleet.topology()));
}

// A rack of NVL72 trays, which share their links, and one of DGX H100, which do not.
Topology mixed() {
  return built(
      one_hall("    - racks:\n"
               "      - {name: tray, cooling: direct-liquid-hybrid, nodes: [{type: "
               "gb200-nvl72-tray, count: 18}]}\n"
               "      - {cooling: in-row-or-dense-air, nodes: [{type: dgx-h100, count: 4}]}\n"));
}

/// Returns some of the devices of some nodes.
std::vector<NodeDevices> random_gang(const Topology& topology, Rng& rng) {
  std::vector<NodeDevices> gang;
  for (std::uint32_t n = 0; n < topology.node_count(); ++n) {
    const std::uint32_t devices = topology.group(NodeId(n)).devices;
    const std::uint64_t mask = rng.next_u64() & ((std::uint64_t{1} << devices) - 1);
    if (rng.below(2) == 0 && mask != 0) gang.push_back({NodeId(n), mask});
  }
  return gang;
}

std::vector<DeviceId> devices_of(const std::vector<NodeDevices>& gang, const Topology& topology) {
  std::vector<DeviceId> devices;
  for (const NodeDevices& part : gang) {
    for (std::uint32_t i = 0; i < topology.group(part.node).devices; ++i) {
      if ((part.devices >> i & 1) == 0) continue;
      devices.emplace_back(topology.place(part.node).first_device.value() + i);
    }
  }
  return devices;
}

TEST(RankMap, MasksOfNodesAndListsOfDevicesAreTheSameGang) {
  const Topology topology = mixed();
  Rng rng(7);
  int mapped = 0;
  for (int round = 0; round < 500; ++round) {
    const std::vector<NodeDevices> gang = random_gang(topology, rng);
    std::vector<DeviceId> devices = devices_of(gang, topology);
    EXPECT_EQ(nodes_of(devices, topology), gang);
    const std::uint32_t tp = 1 + static_cast<std::uint32_t>(rng.below(2));
    const ParallelPlan plan{.tp = tp, .dp = static_cast<std::uint32_t>(devices.size()) / tp};
    std::reverse(devices.begin(), devices.end());
    const auto one = map_ranks(plan, gang, topology);
    const auto other = map_ranks(plan, devices, topology);
    ASSERT_EQ(one.has_value(), other.has_value());
    EXPECT_EQ(one.has_value(), check_ranks(plan, gang, topology).has_value());
    if (!one) {
      EXPECT_EQ(one.error().text(), other.error().text());
      continue;
    }
    ++mapped;
    EXPECT_EQ(one->devices, other->devices);
    EXPECT_EQ(one->devices, devices_of(gang, topology));
  }
  EXPECT_GT(mapped, 100);
}

TEST(RankMap, CountsTheDevicesOfEachScaleUpDomain) {
  const Topology topology = mixed();
  const std::vector<NodeDevices> gang = {
      {NodeId(0), 0b1111}, {NodeId(17), 0b0001}, {NodeId(18), 0xff}, {NodeId(20), 0x0f}};
  std::vector<std::pair<NodeId, std::uint32_t>> shares;
  for_each_domain_share(gang, topology, [&](NodeId first, std::uint32_t devices) {
    shares.emplace_back(first, devices);
  });
  EXPECT_EQ(shares, (std::vector<std::pair<NodeId, std::uint32_t>>{
                        {NodeId(0), 5}, {NodeId(18), 8}, {NodeId(20), 4}}));
}

}  // namespace
}  // namespace orrery
