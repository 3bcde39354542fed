#include "fleet/spec/accelerator_fleet.hpp"

#include "fleet/fleet_test.hpp"
#include "fleet/network/torus_grid.hpp"

namespace orrery {
namespace {

/// A fleet, the catalog with its nodes, and the topology built from both.
struct Made {
  AcceleratorFleet fleet;
  std::unique_ptr<Catalog> catalog;
  Topology topology;
};

Made made(const AcceleratorFleetOptions& options) {
  Made result;
  Result<AcceleratorFleet> fleet = fleet_of_accelerators(test_catalog(), options);
  EXPECT_TRUE(fleet) << (fleet ? "" : fleet.error().text());
  if (!fleet) return result;
  result.fleet = *std::move(fleet);
  const Catalog* catalog = &test_catalog();
  if (!result.fleet.nodes.empty()) {
    Result<Catalog> with = test_catalog().with(result.fleet.nodes);
    EXPECT_TRUE(with) << (with ? "" : with.error().text());
    if (!with) return result;
    result.catalog = std::make_unique<Catalog>(*std::move(with));
    catalog = result.catalog.get();
  }
  Result<Topology> topology = build_topology(result.fleet.spec, *catalog);
  EXPECT_TRUE(topology) << options.accelerators.front().type << ":"
                        << options.accelerators.front().count << ": "
                        << (topology ? "" : topology.error().text());
  if (topology) result.topology = *std::move(topology);
  return result;
}

std::string refused(const AcceleratorFleetOptions& options) {
  Result<AcceleratorFleet> fleet = fleet_of_accelerators(test_catalog(), options);
  EXPECT_FALSE(fleet) << "the fleet was made";
  return fleet ? "" : fleet.error().text();
}

TEST(AcceleratorFleet, OfAnyTypeOfTheCatalogBuilds) {
  for (const Accelerator& type : test_catalog().all<Accelerator>()) {
    const int each = test_catalog().default_node(type).accelerators_per_node;
    for (const int nodes : {1, 8, 100}) {
      const Made fleet = made({.accelerators = {{type.id, nodes * each}}});
      EXPECT_EQ(fleet.topology.node_count(), static_cast<std::uint32_t>(nodes)) << type.id;
      EXPECT_EQ(fleet.topology.device_count(), static_cast<std::uint32_t>(nodes * each)) << type.id;
      EXPECT_TRUE(fleet.fleet.nodes.empty()) << type.id;
      ASSERT_EQ(fleet.topology.fabrics().size(), 1u) << type.id;
      EXPECT_EQ(fleet.topology.fabrics()[0].nodes.size(), static_cast<std::size_t>(nodes));
    }
  }
}

TEST(AcceleratorFleet, OfAnySizeHasANetworkThatJoinsAllNodes) {
  const std::vector<AcceleratorFleetOptions> fleets = {
      {.accelerators = {{"h100", 100'000}}, .node_accelerators = {}},
      {.accelerators = {{"h100", 1'000'000}}, .node_accelerators = {}},
      {.accelerators = {{"tpu-v5e", 1'000'000}}, .node_accelerators = {}},
      {.accelerators = {{"v100-16g", 1'000'000}}, .node_accelerators = 1},
  };
  for (const AcceleratorFleetOptions& options : fleets) {
    const Made fleet = made(options);
    const AcceleratorCount& asked = options.accelerators.front();
    EXPECT_EQ(fleet.topology.device_count(), static_cast<std::uint32_t>(asked.count)) << asked.type;
    ASSERT_EQ(fleet.topology.fabrics().size(), 1u) << asked.type;
    EXPECT_EQ(fleet.topology.fabrics()[0].nodes.size(), fleet.topology.node_count());
  }
}

TEST(AcceleratorFleet, HasWiderSwitchesOnlyWhereTheUsualOnesAreTooFew) {
  const auto ports = [](int count) {
    const Made fleet = made({.accelerators = {{"h100", count}}});
    return fleet.fleet.spec.sites.front().fabrics.front().switch_radix;
  };
  EXPECT_EQ(ports(8 * 8192), std::nullopt);
  EXPECT_EQ(ports(8 * 8193), 128);
  EXPECT_EQ(ports(8 * 65'537), 256);
}

TEST(AcceleratorFleet, HasJustTheAcceleratorsAskedForWhereTheyFillNoWholeNodes) {
  for (const Accelerator& type : test_catalog().all<Accelerator>()) {
    const int each = test_catalog().default_node(type).accelerators_per_node;
    if (each == 1) continue;
    for (const int count : {1, 4 * each - 1}) {
      const Made fleet = made({.accelerators = {{type.id, count}}});
      EXPECT_EQ(fleet.topology.device_count(), static_cast<std::uint32_t>(count)) << type.id;
      EXPECT_EQ(fleet.topology.node_count(), count == 1 ? 1u : 4u) << type.id;
      ASSERT_EQ(fleet.topology.fabrics().size(), 1u) << type.id;
      EXPECT_EQ(fleet.topology.fabrics()[0].nodes.size(), fleet.topology.node_count());
    }
  }
}

TEST(AcceleratorFleet, MayHaveOneAcceleratorANode) {
  for (const Accelerator& type : test_catalog().all<Accelerator>()) {
    const Made fleet = made({.accelerators = {{type.id, 36}}, .node_accelerators = 1});
    EXPECT_EQ(fleet.topology.node_count(), 36u) << type.id;
    for (const NodeGroup& group : fleet.topology.groups()) {
      EXPECT_EQ(group.devices, 1) << type.id;
      EXPECT_EQ(group.scale_up_nodes, 1u) << type.id;
      EXPECT_EQ(group.scale_up_devices, 1u) << type.id;
    }
  }
}

TEST(AcceleratorFleet, OfSeveralTypesHasANetworkForEach) {
  const Made fleet =
      made({.accelerators = {{"v100", 36}, {"p100", 36}, {"k80", 36}}, .node_accelerators = 1});
  EXPECT_EQ(fleet.topology.device_count(), 108u);
  EXPECT_EQ(fleet.topology.type_count(), 3u);
  EXPECT_EQ(fleet.topology.fabrics().size(), 3u);
  const Made mixed = made({.accelerators = {{"h100", 20}, {"tpu-v4", 72}, {"gb200", 76}}});
  EXPECT_EQ(mixed.topology.device_count(), 168u);
  std::size_t joined = 0;
  for (const FabricInstance& fabric : mixed.topology.fabrics()) joined += fabric.nodes.size();
  EXPECT_EQ(joined, mixed.topology.node_count());
}

TEST(AcceleratorFleet, TakesTheFabricOfTheReferenceSystem) {
  const Made h100 = made({.accelerators = {{"h100", 64}}});
  EXPECT_EQ(h100.topology.fabrics()[0].type->id, "ib-ndr");
  const Made v100 = made({.accelerators = {{"v100", 64}}});
  EXPECT_EQ(v100.topology.fabrics()[0].type->id, "ethernet-100");
}

TEST(AcceleratorFleet, JoinsWholeDomainsAndTheRest) {
  const Made pods = made({.accelerators = {{"tpu-v4", 4096 + 128 + 16}}});
  const auto groups = pods.topology.groups();
  ASSERT_GE(groups.size(), 3u);
  EXPECT_EQ(pods.topology.group(NodeId(0)).scale_up_devices, 4096u);
  EXPECT_EQ(pods.topology.group(NodeId(0)).torus->shape, (std::vector<int>{16, 16, 16}));
  EXPECT_EQ(pods.topology.group(NodeId(1024)).torus->shape, (std::vector<int>{4, 4, 8}));
  EXPECT_EQ(pods.topology.group(NodeId(1024)).torus->cube, (std::vector<int>{4, 4, 4}));
  EXPECT_EQ(groups.back().scale_up_devices, 16u);
  EXPECT_TRUE(groups.back().torus->cube.empty());
  for (const NodeGroup& group : groups) EXPECT_TRUE(TorusGrid::of(group));
  const Made racks = made({.accelerators = {{"gb200", 76}}});
  EXPECT_EQ(racks.topology.group(NodeId(0)).scale_up_devices, 72u);
  EXPECT_EQ(racks.topology.group(NodeId(18)).scale_up_devices, 4u);
}

TEST(AcceleratorFleet, GivesASmallNodeItsPartOfTheServerAndALastOneTheNicsOfTheOthers) {
  const NodeType& whole = *test_catalog().find<NodeType>("dgx-h100");
  const Made small = made({.accelerators = {{"h100", 4}}, .node_accelerators = 2});
  const NodeType& half = *small.catalog->find<NodeType>("dgx-h100-2");
  EXPECT_EQ(half.compute_nics, 2);
  EXPECT_EQ(half.compute_bandwidth, whole.compute_bandwidth / 4);
  EXPECT_EQ(*half.max_power, *whole.max_power / 4);
  const Made odd = made({.accelerators = {{"h100", 18}}});
  const NodeType& last = *odd.catalog->find<NodeType>("dgx-h100-2");
  EXPECT_EQ(last.compute_nics, whole.compute_nics);
  EXPECT_EQ(last.compute_bandwidth, whole.compute_bandwidth);
  EXPECT_EQ(*last.max_power, *half.max_power);
}

TEST(AcceleratorFleet, IsRefusedByNoLimitOnPower) {
  const Made fleet = made({.accelerators = {{"b300", 64}, {"l4", 64}, {"mi355x", 64}}});
  for (const PowerDomain& domain : fleet.topology.power_domains()) {
    ASSERT_TRUE(domain.limit);
    EXPECT_LE(domain.max_power, *domain.limit);
  }
}

TEST(AcceleratorFleet, CanBeWrittenAndReadBack) {
  const Made fleet = made({.accelerators = {{"tpu-v5e", 800}}});
  Result<FleetSpec> read = spec_of(write_fleet_spec(fleet.fleet.spec));
  ASSERT_TRUE(read) << read.error().text();
  const Result<Topology> again = build_topology(*read, test_catalog());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->device_count(), 800u);
}

TEST(AcceleratorFleet, SaysWhatItAssumed) {
  const AcceleratorFleet fleet = made({.accelerators = {{"h100", 20}}}).fleet;
  ASSERT_EQ(fleet.assumptions.size(), 4u);
  EXPECT_EQ(fleet.assumptions[0], "nvidia-h100-sxm5-80g: 2 x dgx-h100 (8 accelerators each)");
  EXPECT_EQ(fleet.assumptions[1],
            "dgx-h100-4: 4 of the 8 accelerators of dgx-h100 and as large a part of all else");
}

TEST(AcceleratorFleet, RefusesWhatIsNoFleet) {
  EXPECT_EQ(refused({}), "a fleet needs accelerators");
  EXPECT_NE(refused({.accelerators = {{"h10", 8}}}).find("h100"), std::string::npos);
  EXPECT_NE(refused({.accelerators = {{"mi300y", 8}}}).find("did you mean \"mi300"),
            std::string::npos);
  EXPECT_EQ(refused({.accelerators = {{"h100", 0}}}),
            "h100: 0 accelerators, expected 1 to 1048576");
  EXPECT_EQ(refused({.accelerators = {{"h100", 8}, {"NVIDIA-H100-SXM5-80G", 8}}}),
            "NVIDIA-H100-SXM5-80G (nvidia-h100-sxm5-80g) is given twice");
  EXPECT_EQ(refused({.accelerators = {{"h100", 16}}, .node_accelerators = 16}),
            "16 accelerators a node, expected 1 to 8, which the dgx-h100 of nvidia-h100-sxm5-80g "
            "holds");
}

}  // namespace
}  // namespace orrery
