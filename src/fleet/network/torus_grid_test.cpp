// fleet/network/torus_grid_test.cpp - every device has one position, and nodes are blocks of
// neighbours.
#include "fleet/network/torus_grid.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <set>

#include "fleet/fleet_test.hpp"
#include "fleet/spec/generate.hpp"

namespace orrery {
namespace {

NodeGroup torus_group(std::uint16_t devices, const TorusShape& shape) {
  NodeGroup group;
  group.devices = devices;
  group.scale_up_shape = shape;
  group.scale_up_devices = static_cast<std::uint32_t>(accelerator_count(shape));
  return group;
}

TorusGrid grid_of(std::uint16_t devices, const TorusShape& shape) {
  const std::optional<TorusGrid> grid = TorusGrid::of(torus_group(devices, shape));
  EXPECT_TRUE(grid);
  return grid.value_or(TorusGrid());
}

/// Adds the grids of the tori in a fleet, by description.
void add_grids(const Topology& topology, std::map<std::string, TorusGrid>& grids) {
  for (const NodeGroup& group : topology.groups()) {
    const std::optional<TorusGrid> grid = TorusGrid::of(group);
    const bool torus =
        group.scale_up_shape && std::holds_alternative<TorusShape>(*group.scale_up_shape);
    EXPECT_EQ(grid.has_value(), torus) << topology.name();
    if (grid) grids.emplace(topology.name() + "/" + topology.node_type(group).id, *grid);
  }
}

/// Returns the grids of the examples and of the catalog's systems.
std::map<std::string, TorusGrid> known_grids() {
  std::map<std::string, TorusGrid> grids;
  const std::string folder = std::string(ORRERY_SOURCE_DIR) + "/examples/fleets";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    add_grids(build_topology(*load_fleet_spec(entry.path().string()), test_catalog()).value(),
              grids);
  }
  for (const SystemType& system : test_catalog().all<SystemType>()) {
    if (system.torus_shape.empty() && system.cube_shape.empty()) continue;
    add_grids(
        build_topology(*generate_fleet(test_catalog(), system.id, {}), test_catalog()).value(),
        grids);
  }
  return grids;
}

TEST(TorusGrid, MakesANodeTheFlattestBlockThatTilesTheCube) {
  TorusShape v5p{.dims = {16, 20, 28}};
  v5p.cube = TorusShape::Coordinates{4, 4, 4};
  EXPECT_EQ(grid_of(4, v5p).block(), (Sides{2, 2, 1}));
  EXPECT_EQ(grid_of(1, v5p).block(), (Sides{1, 1, 1}));
  EXPECT_EQ(grid_of(8, {.dims = {16, 16, 1}}).block(), (Sides{2, 4, 1}));
  EXPECT_EQ(grid_of(16, {.dims = {4, 4, 4}}).block(), (Sides{4, 4, 1}));
  EXPECT_EQ(grid_of(16, {.dims = {4, 4, 1}}).block(), (Sides{4, 4, 1}));
}

TEST(TorusGrid, NumbersCubesThenNodesThenDevices) {
  TorusShape shape{.dims = {8, 4, 4}};
  shape.cube = TorusShape::Coordinates{4, 4, 4};
  const TorusGrid grid = grid_of(4, shape);
  EXPECT_EQ(grid.cubes(), 2U);
  EXPECT_EQ(grid.coordinates(1), (Sides{1, 0, 0}));
  EXPECT_EQ(grid.coordinates(2), (Sides{0, 1, 0}));
  EXPECT_EQ(grid.coordinates(4), (Sides{2, 0, 0}));
  EXPECT_EQ(grid.coordinates(8), (Sides{0, 2, 0}));
  EXPECT_EQ(grid.coordinates(16), (Sides{0, 0, 1}));
  EXPECT_EQ(grid.coordinates(64), (Sides{4, 0, 0}));
  EXPECT_EQ(grid.cube_of(63), 0U);
  EXPECT_EQ(grid.cube_of(64), 1U);
}

TEST(TorusGrid, IsNoneWhereNodesDoNotTileACubeOrThereIsNoTorus) {
  EXPECT_FALSE(TorusGrid::of(torus_group(8, {.dims = {6, 6, 1}})));
  EXPECT_FALSE(TorusGrid::of(torus_group(16, {.dims = {2, 2, 2}})));
  EXPECT_FALSE(TorusGrid::of(NodeGroup{}));
}

TEST(TorusGrid, IsClosedUnlessOpenOrTwisted) {
  EXPECT_EQ(grid_of(1, {.dims = {2, 2, 4}}).closed(), (std::array{true, true, true}));
  TorusShape shape{.dims = {2, 2, 4}};
  shape.wrap[1] = TorusShape::Wrap::kOpen;
  EXPECT_EQ(grid_of(1, shape).closed(), (std::array{true, false, true}));
  EXPECT_EQ(grid_of(1, {.dims = {2, 2, 4}, .twist = TorusShape::Twist::kLongByHalf}).closed(),
            (std::array{false, false, false}));
}

TEST(TorusGrid, GivesEachDeviceOfEveryKnownTorusItsOwnPlace) {
  const std::map<std::string, TorusGrid> grids = known_grids();
  EXPECT_GE(grids.size(), 8U);
  for (const auto& [name, grid] : grids) {
    std::set<Sides> seen;
    for (std::uint32_t device = 0; device < volume(grid.sides()); ++device) {
      const Sides at = grid.coordinates(device);
      for (std::size_t d = 0; d < at.size(); ++d) ASSERT_LT(at[d], grid.sides()[d]) << name;
      ASSERT_EQ(grid.device(at), device) << name;
      seen.insert(at);
    }
    EXPECT_EQ(seen.size(), volume(grid.sides())) << name;
  }
}

TEST(TorusGrid, KeepsTheDevicesOfANodeAndOfACubeTogether) {
  for (const auto& [name, grid] : known_grids()) {
    const std::uint32_t per_node = volume(grid.block());
    for (std::uint32_t device = 0; device < volume(grid.sides()); ++device) {
      const Sides at = grid.coordinates(device);
      const Sides node = grid.coordinates(device / per_node * per_node);
      for (std::size_t d = 0; d < at.size(); ++d) {
        ASSERT_EQ(at[d] / grid.block()[d], node[d] / grid.block()[d]) << name << " " << device;
        const std::uint32_t first = grid.cube_of(device) * volume(grid.cube());
        ASSERT_EQ(at[d] / grid.cube()[d], grid.coordinates(first)[d] / grid.cube()[d]);
      }
    }
  }
}

}  // namespace
}  // namespace orrery
