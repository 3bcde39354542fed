// scheduler/place/place_slice_test.cpp - slices of tori are cuboids, never overlap, and are found.
#include "scheduler/place/place_slice.hpp"

#include <gtest/gtest.h>

#include "scheduler/place/slice_test.hpp"

namespace orrery {
namespace {

Topology v5p_pod() {
  const std::string path = std::string(ORRERY_SOURCE_DIR) + "/examples/fleets/tpu-v5p-pod.yaml";
  return build_topology(*load_fleet_spec(path), test_catalog()).value();
}

/// Pods of one torus, all in racks of `nodes` hosts.
std::string torus_pods(int pods, const std::string& torus, const std::string& racks) {
  return one_hall("    - name: pod\n      count: " + std::to_string(pods) + "\n      torus: {" +
                  torus + "}\n      racks: [{cooling: direct-liquid-hybrid, " + racks + "}]\n");
}

/// Pods of four cubes of 4 x 4 x 4, two a rack: 64 hosts of 4.
Topology small_cubes(int pods) {
  return built(torus_pods(pods, "shape: [4, 8, 8], cube: [4, 4, 4]",
                          "count: 2, nodes: [{type: tpu-v5p-host, count: 32}]"));
}

/// Pods of 8 x 8 chips without cubes: 8 hosts of 8.
Topology flat_torus(int pods) {
  return built(
      torus_pods(pods, "shape: [8, 8]", "count: 2, nodes: [{type: tpu-v5e-host, count: 4}]"));
}

/// Ultraservers of 4 instances, 4 x 4 x 4 chips.
Topology ultraservers(int count) {
  return built(one_hall("    - name: su\n      racks: [{count: " + std::to_string(count) +
                        ", cooling: in-row-or-dense-air, torus: {shape: [4, 4, 4]}, nodes: "
                        "[{type: aws-trn2-48xlarge, count: 4}]}]\n"));
}

std::uint32_t rack_of(const Topology& topology, const NodeDevices& entry) {
  return topology.place(entry.node).rack.value();
}

/// Cubes of a pod of cubes on which nothing runs.
std::uint32_t whole_cubes(const FleetView& view) {
  const TorusGrid grid = *TorusGrid::of(view.topology().groups()[0]);
  const std::uint32_t nodes = volume(grid.cube()) / volume(grid.block());
  std::uint32_t whole = 0;
  for (std::uint32_t first = 0; first < view.topology().node_count(); first += nodes) {
    std::uint32_t free = 0;
    for (std::uint32_t i = 0; i < nodes; ++i) free += view.node(NodeId(first + i)).available();
    if (free == volume(grid.cube())) ++whole;
  }
  return whole;
}

TEST(PlaceSlice, FillsAV5pPodWithExactly70SlicesOf4x4x8) {
  SliceFleet pod(v5p_pod());
  for (int i = 0; i < 70; ++i) {
    const Allocation slice = pod.start({4, 4, 8});  // take() refuses what overlaps
    ASSERT_EQ(slice_fault(pod.fleet.topology(), slice, {4, 4, 8}), "") << i;
  }
  const AllocationOrRefusal refused = pod.place({4, 4, 8});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), (Refusal{RejectionKind::kBusy, TopologyLevel::kScaleUp, 128}));
}

TEST(PlaceSlice, StringsAnyFreeCubes) {
  SliceFleet pod(v5p_pod());
  std::vector<Allocation> cubes;
  for (int i = 0; i < 140; ++i) cubes.push_back(pod.start({4, 4, 4}));
  for (const int freed : {3, 50, 77, 139})
    give_back(pod.fleet, cubes[static_cast<std::size_t>(freed)], {});
  // A torus of 16 x 4 x 4 of which no two cubes are neighbours.
  const Allocation slice = pod.start({4, 16, 4});
  EXPECT_EQ(slice_fault(pod.fleet.topology(), slice, {4, 16, 4}), "");
  EXPECT_EQ(slice.ranks.front().node, NodeId(3 * 16));
  const AllocationOrRefusal refused = pod.place({4, 4, 4});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().missing, 64U);
}

TEST(PlaceSlice, LeavesOutSidesOfOne) {
  SliceFleet pod(flat_torus(1));
  EXPECT_EQ(pod.place({4, 4, 0}), pod.place({4, 4, 1}));
  EXPECT_EQ(slice_fault(pod.fleet.topology(), *pod.place({8, 0, 0}), {8, 1, 1}), "");
}

TEST(PlaceSlice, KeepsWholeCubesWhole) {
  SliceFleet pods(small_cubes(2));
  pods.start({2, 2, 2});
  EXPECT_EQ(whole_cubes(pods.fleet.view()), 7U);
  // All that is left of that cube goes before another is begun.
  for (const Sides& slice : {Sides{2, 4, 4}, Sides{2, 2, 1}, Sides{2, 2, 1}, Sides{2, 2, 2}}) {
    EXPECT_EQ(slice_fault(pods.fleet.topology(), pods.start(slice), slice), "");
    EXPECT_EQ(whole_cubes(pods.fleet.view()), 7U);
  }
  pods.start({4, 4, 4});
  EXPECT_EQ(whole_cubes(pods.fleet.view()), 6U);
  pods.start({2, 2, 1});
  EXPECT_EQ(whole_cubes(pods.fleet.view()), 6U);
  pods.start({2, 2, 4});
  EXPECT_EQ(whole_cubes(pods.fleet.view()), 5U);
}

TEST(PlaceSlice, TakesTheTightestPodAndInItWholeRacks) {
  SliceFleet pods(small_cubes(3));
  const Topology& topology = pods.fleet.topology();
  const std::uint32_t pod_nodes = topology.node_count() / 3;
  // The first cube of the middle pod is taken: two racks of one and two cubes are left there.
  for (std::uint32_t i = 0; i < 16; ++i) pods.fleet.set_free(NodeId(pod_nodes + i), 0);
  const Allocation two = pods.start({4, 4, 8});
  EXPECT_EQ(two.ranks.front().node, NodeId(pod_nodes + 32));
  EXPECT_EQ(rack_of(topology, two.ranks.front()), rack_of(topology, two.ranks.back()));
  // One cube is left of that pod; the next two come from a whole rack of the first pod.
  EXPECT_EQ(pods.start({4, 8, 4}).ranks.front().node, NodeId(0));
  EXPECT_EQ(pods.start({4, 4, 4}).ranks.front().node, NodeId(pod_nodes + 16));
}

TEST(PlaceSlice, TurnsASliceSoThatItCutsFewestHosts) {
  SliceFleet pod(flat_torus(1));
  EXPECT_EQ(pod.place({4, 2, 0})->ranks.size(), 1U);  // a host is 2 x 4
  EXPECT_EQ(pod.place({4, 8, 0})->ranks.size(), 4U);
  EXPECT_EQ(pod.place({1, 1, 1})->ranks.size(), 1U);
  SliceFleet cubes(small_cubes(1));
  EXPECT_EQ(cubes.place({1, 2, 2})->ranks.size(), 1U);
  EXPECT_EQ(cubes.place({1, 4, 4})->ranks.size(), 4U);
}

TEST(PlaceSlice, GoesRoundTheEndOfATorusButNotOfACube) {
  SliceFleet pod(flat_torus(1));
  const TorusGrid grid = *TorusGrid::of(pod.fleet.topology().groups()[0]);
  for (std::uint32_t node = 0; node < 8; ++node) {
    // Free where x is 6 or 0; a host is two wide.
    const Sides at = grid.coordinates(node * 8);
    pod.fleet.set_free(NodeId(node), at[0] == 6 ? 0xaa : at[0] == 0 ? 0x55 : 0);
  }
  const AllocationOrRefusal round = pod.place({2, 8, 0});
  ASSERT_TRUE(round);
  EXPECT_EQ(slice_fault(pod.fleet.topology(), *round, {2, 8, 1}), "");
  SliceFleet cube(built(torus_pods(1, "shape: [4, 4, 4], cube: [4, 4, 4]",
                                   "count: 1, nodes: [{type: tpu-v5p-host, count: 16}]")));
  for (std::uint32_t node = 0; node < 16; ++node) {
    cube.fleet.set_free(NodeId(node), node % 2 == 0 ? 0b0101 : 0b1010);
  }
  EXPECT_FALSE(cube.place({2, 4, 4}));
  EXPECT_TRUE(cube.place({1, 4, 4}));
}

TEST(PlaceSlice, OffersOtherToriAndCubesTheTightestFirst) {
  SliceFleet pods(small_cubes(3));
  pods.fleet.set_free(NodeId(70), 0);
  PlaceOptions options;
  options.most = 9;
  const std::vector<Allocation> cubes =
      pods.placer.offers(pods.fleet.view(), pods.request({4, 4, 8}), options);
  ASSERT_EQ(cubes.size(), 3U);
  EXPECT_EQ(cubes[0].ranks.front().node, NodeId(96));  // the whole rack of the second pod
  EXPECT_EQ(cubes[0], *pods.place({4, 4, 8}));
  const std::vector<Allocation> parts =
      pods.placer.offers(pods.fleet.view(), pods.request({2, 2, 2}), options);
  ASSERT_EQ(parts.size(), 9U);
  EXPECT_EQ(parts[0].ranks.front().node.value() / 16, 4U);
  for (const Allocation& part : parts) {
    EXPECT_EQ(slice_fault(pods.fleet.topology(), part, {2, 2, 2}), "");
  }
}

TEST(PlaceSlice, StaysWithinWhatTheRequestAndTheCallerAllow) {
  SliceFleet pods(small_cubes(2));
  const FleetView view = pods.fleet.view();
  GangRequest request = pods.request({4, 4, 4});
  const std::array<NodeRun, 1> avoid{{{NodeId(0), 64}}};
  PlaceOptions options;
  options.avoid = avoid;
  EXPECT_EQ(pods.placer.place(view, request, options)->ranks.front().node, NodeId(64));
  options.avoid = {};
  options.within = pods.tree.around(NodeId(100), TopologyLevel::kRack);
  EXPECT_EQ(pods.placer.place(view, request, options)->ranks.front().node, NodeId(96));
  request.sites = 0;
  EXPECT_FALSE(pods.placer.place(view, request));
  EXPECT_FALSE(slice_fits_empty(pods.tree, request));
  GangRequest in_rack = pods.request({4, 4, 8});
  in_rack.required = TopologyLevel::kRack;
  pods.fleet.set_free(NodeId(0), 0);
  const Allocation rack = *pods.placer.place(view, in_rack);
  EXPECT_EQ(rack_of(pods.fleet.topology(), rack.ranks.front()),
            rack_of(pods.fleet.topology(), rack.ranks.back()));
  in_rack.slice = {4, 8, 8};
  in_rack.devices = 256;
  EXPECT_FALSE(slice_fits_empty(pods.tree, in_rack));
  in_rack.required = TopologyLevel::kScaleUp;
  EXPECT_TRUE(slice_fits_empty(pods.tree, in_rack));
}

TEST(PlaceSlice, LeavesOutNodesThatAreNotReadyOrWhoseHostIsFull) {
  SliceFleet pod(small_cubes(1));
  pod.fleet.set_health(NodeId(0), NodeHealth::kDraining);
  GangRequest request = pod.request({4, 4, 4});
  request.host.memory = 1024;
  NodeState full = pod.fleet.view().node(NodeId(16));
  full.used_memory = pod.fleet.topology().group(NodeId(16)).host.memory - 1024;
  pod.fleet.set_node(NodeId(16), full);
  const Allocation slice = *pod.placer.place(pod.fleet.view(), request);
  EXPECT_EQ(slice.ranks.front().node, NodeId(32));
}

TEST(PlaceSlice, TakesTheRestOfItsHostsWhenExclusive) {
  SliceFleet pod(flat_torus(1));
  GangRequest request = pod.request({2, 2, 0});
  request.exclusive = TopologyLevel::kNode;
  pod.fleet.set_free(NodeId(0), 0x0f);
  const Allocation slice = *pod.placer.place(pod.fleet.view(), request);
  ASSERT_EQ(slice.ranks.size(), 1U);
  EXPECT_NE(slice.ranks.front().node, NodeId(0));
  ASSERT_EQ(slice.idle.size(), 1U);
  EXPECT_EQ(slice.idle.front().devices | slice.ranks.front().devices, 0xffU);
  request.exclusive = TopologyLevel::kRack;
  EXPECT_GE(pod.placer.place(pod.fleet.view(), request)->ranks.front().node, NodeId(4));
}

TEST(PlaceSlice, NeverFitsWhatNoEmptyTorusHolds) {
  const SliceFleet cubes(small_cubes(2));
  EXPECT_TRUE(slice_fits_empty(cubes.tree, cubes.request({4, 8, 8})));
  EXPECT_TRUE(slice_fits_empty(cubes.tree, cubes.request({4, 4, 16})));
  EXPECT_FALSE(slice_fits_empty(cubes.tree, cubes.request({4, 4, 20})));
  EXPECT_FALSE(slice_fits_empty(cubes.tree, cubes.request({2, 4, 8})));
  EXPECT_TRUE(slice_fits_empty(cubes.tree, cubes.request({3, 1, 4})));
  const SliceFleet flat(flat_torus(1));
  EXPECT_TRUE(slice_fits_empty(flat.tree, flat.request({5, 7, 0})));
  EXPECT_FALSE(slice_fits_empty(flat.tree, flat.request({9, 1, 0})));
  EXPECT_FALSE(slice_fits_empty(flat.tree, flat.request({2, 2, 2})));
  const SliceFleet switched(built(small_h100()));
  EXPECT_FALSE(slice_fits_empty(switched.tree, switched.request({2, 2, 2})));
}

TEST(PlaceSlice, RefusesByTheBoxWithMostRoom) {
  SliceFleet pods(flat_torus(2));
  for (std::uint32_t node = 0; node < 16; ++node)
    pods.fleet.set_free(NodeId(node), node < 3 ? 0xff : 1);
  EXPECT_EQ(pods.place({8, 8, 0}).error(),
            (Refusal{RejectionKind::kBusy, TopologyLevel::kScaleUp, 64 - 29}));
  // Room enough, but not in one piece.
  EXPECT_EQ(pods.place({5, 5, 0}).error(),
            (Refusal{RejectionKind::kBusy, TopologyLevel::kScaleUp, 1}));
  EXPECT_EQ(pods.placer.refusal_of(pods.fleet.view(), pods.request({5, 5, 0}), {}),
            pods.place({5, 5, 0}).error());
}

TEST(UsualSlices, AreTheCuboidsOfATorusMostCubicFirst) {
  const Topology v5p = v5p_pod();
  const NodeGroup& cubes = v5p.groups()[0];
  EXPECT_EQ(usual_slices(cubes, 128), (std::vector<Sides>{{4, 4, 8}}));
  EXPECT_EQ(usual_slices(cubes, 8), (std::vector<Sides>{{2, 2, 2}, {2, 4, 1}}));
  EXPECT_EQ(usual_slices(cubes, 4).front(), (Sides{2, 2, 1}));
  EXPECT_EQ(usual_slices(cubes, 1), (std::vector<Sides>{{1, 1, 1}}));
  EXPECT_EQ(usual_slices(cubes, 512).front(), (Sides{8, 8, 8}));
  EXPECT_EQ(usual_slices(cubes, 8960).front(), (Sides{16, 20, 28}));
  EXPECT_TRUE(usual_slices(cubes, 96).empty());
  EXPECT_TRUE(usual_slices(cubes, 9024).empty());
  EXPECT_TRUE(usual_slices(cubes, 0).empty());
  const Topology flat = flat_torus(1);
  EXPECT_EQ(usual_slices(flat.groups()[0], 16), (std::vector<Sides>{{4, 4, 1}, {2, 8, 1}}));
  EXPECT_TRUE(usual_slices(flat.groups()[0], 13).empty());
  const Topology switched = built(small_h100());
  EXPECT_TRUE(usual_slices(switched.groups()[0], 8).empty());
}

TEST(UsualSlices, AllFitAnEmptyTorus) {
  for (const Topology& topology : {small_cubes(1), flat_torus(1), ultraservers(1)}) {
    const SliceFleet fleet(topology);
    for (std::uint32_t devices = 1; devices <= topology.device_count(); ++devices) {
      for (const Sides& slice : usual_slices(topology.groups()[0], devices)) {
        ASSERT_TRUE(slice_fits_empty(fleet.tree, fleet.request(slice))) << devices;
      }
    }
  }
}

TEST(PlaceSlice, FindsACuboidWheneverThereIsOneInATorusWithoutCubes) {
  Rng rng(21);
  int found = 0;
  int none = 0;
  const std::vector<Sides> flat_slices{{2, 2, 0}, {2, 4, 0}, {3, 2, 0}, {1, 8, 0}, {4, 4, 0}};
  const std::vector<Sides> deep_slices{{2, 2, 2}, {4, 2, 1}, {3, 2, 1}, {4, 4, 1}, {2, 3, 3}};
  for (const auto& [topology, slices] :
       {std::pair{flat_torus(2), flat_slices}, std::pair{ultraservers(2), deep_slices}}) {
    SliceFleet fleet(topology);
    for (int i = 0; i < 150; ++i) {
      fleet.occupy(rng, 5 + rng.below(40));
      for (Sides slice : slices) {
        const AllocationOrRefusal placed = fleet.place(slice);
        for (std::uint32_t& side : slice) side = std::max(side, 1U);
        ASSERT_EQ(placed.has_value(), any_slice(fleet.fleet.view(), slice)) << i;
        ++(placed ? found : none);
        if (!placed) continue;
        ASSERT_EQ(slice_fault(fleet.fleet.topology(), *placed, slice), "");
      }
    }
  }
  EXPECT_GT(found, 200);
  EXPECT_GT(none, 200);
}

/// Starts and ends random slices, and checks each answer; returns what it did, for comparison.
std::vector<Allocation> random_days(SliceFleet& fleet, std::uint64_t seed, int days) {
  Rng rng(seed);
  const std::vector<Sides> sizes{{1, 1, 1}, {2, 2, 1}, {2, 2, 2}, {2, 2, 4}, {2, 4, 4},
                                 {4, 4, 4}, {4, 4, 8}, {4, 8, 8}, {3, 2, 1}, {1, 4, 2}};
  std::vector<Allocation> running;
  std::vector<Allocation> history;
  for (int day = 0; day < days; ++day) {
    if (!running.empty() && rng.below(5) < 2) {
      std::swap(running[rng.below(running.size())], running.back());
      give_back(fleet.fleet, running.back(), {});
      running.pop_back();
      continue;
    }
    const Sides slice = sizes[rng.below(sizes.size())];
    const AllocationOrRefusal placed = fleet.place(slice);
    const bool cubes = volume(slice) >= 64;
    const bool there = cubes ? whole_cubes(fleet.fleet.view()) >= volume(slice) / 64
                             : any_slice(fleet.fleet.view(), slice);
    EXPECT_EQ(placed.has_value(), there) << "seed " << seed << " day " << day;
    if (!placed) continue;
    EXPECT_EQ(slice_fault(fleet.fleet.topology(), *placed, slice), "");
    take(fleet.fleet, *placed, {});  // refuses what is not free
    running.push_back(*placed);
    history.push_back(*placed);
  }
  for (const Allocation& slice : running) give_back(fleet.fleet, slice, {});
  return history;
}

TEST(PlaceSlice, OfMixedSizesNeverOverlapAndAreFoundWheneverThereIsRoom) {
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    SliceFleet first(small_cubes(1));
    const std::vector<Allocation> history = random_days(first, seed, 250);
    EXPECT_GT(history.size(), 50U);
    EXPECT_EQ(first.fleet.view().free(Topology::root(), FleetTypeId(0)).devices, 256U);
    SliceFleet second(small_cubes(1));
    EXPECT_EQ(random_days(second, seed, 250), history);
  }
}

TEST(PlaceSlice, OfMixedSizesFillAV5pPodToTheLastChip) {
  SliceFleet pod(v5p_pod());
  const std::vector<Sides> sizes{{8, 8, 8}, {2, 2, 2}, {4, 4, 8}, {2, 4, 4}, {2, 2, 1}, {4, 8, 8}};
  std::uint32_t taken = 0;
  for (std::size_t i = 0; taken < 8960; ++i) {
    ASSERT_LT(i, 5000U);
    const Sides slice = sizes[i % sizes.size()];
    const AllocationOrRefusal placed = pod.place(slice);
    if (!placed) continue;
    ASSERT_EQ(slice_fault(pod.fleet.topology(), *placed, slice), "");
    take(pod.fleet, *placed, {});
    taken += volume(slice);
  }
  EXPECT_EQ(taken, 8960U);
}

}  // namespace
}  // namespace orrery
