// scheduler/place/slice_test.hpp - checks of slices for tests, independent of the code under test.
#pragma once

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/numbers/rng.hpp"
#include "fleet/fleet.hpp"
#include "fleet/fleet_test.hpp"
#include "fleet/network/torus_grid.hpp"
#include "scheduler/pass/taking.hpp"
#include "scheduler/place/place_slice.hpp"

namespace orrery {

/// A fleet with the placers that place slices on it.
struct SliceFleet {
  explicit SliceFleet(Topology topology)
      : fleet(std::move(topology)), tree(fleet.topology()), placer(tree) {}

  [[nodiscard]] GangRequest request(Sides slice) const {
    GangRequest request;
    request.type = FleetTypeId(0);
    request.slice = slice;
    request.devices = std::max(slice[0], 1U) * std::max(slice[1], 1U) * std::max(slice[2], 1U);
    request.node_devices =
        std::min(request.devices, fleet.topology().node_devices_max(request.type));
    return request;
  }
  [[nodiscard]] AllocationOrRefusal place(Sides slice) {
    return placer.place(fleet.view(), request(slice));
  }
  /// Places a slice that must fit, and takes its devices.
  Allocation start(Sides slice) {
    AllocationOrRefusal placed = place(slice);
    EXPECT_TRUE(placed);
    if (!placed) return {};
    take(fleet, *placed, {});
    return *placed;
  }
  void occupy(Rng& rng, std::uint64_t percent) {
    for (std::uint32_t i = 0; i < fleet.topology().node_count(); ++i) {
      std::uint64_t mask = 0;
      for (std::uint32_t d = 0; d < fleet.topology().group(NodeId(i)).devices; ++d) {
        if (rng.below(100) >= percent) mask |= std::uint64_t{1} << d;
      }
      fleet.set_free(NodeId(i), mask);
    }
  }

  Fleet fleet;
  PlaceTree tree;
  Placer placer;
};

inline std::vector<DeviceId> devices_of(const Topology& topology,
                                        const std::vector<NodeDevices>& list) {
  std::vector<DeviceId> devices;
  for (const NodeDevices& entry : list) {
    for (std::uint64_t left = entry.devices; left != 0; left &= left - 1) {
      devices.push_back(DeviceId(topology.place(entry.node).first_device.value() +
                                 static_cast<std::uint32_t>(std::countr_zero(left))));
    }
  }
  return devices;
}

/// First device of the torus around a node.
inline std::uint32_t torus_base(const Topology& topology, NodeId node) {
  return topology.place(topology.place(node).scale_up_first).first_device.value();
}

/// The sides of a set of places if each side's places are adjacent, sorted; zeros if they are no
/// cuboid. A cuboid crosses the end of a dimension only where `closed` is set.
inline Sides cuboid_sides(const std::vector<Sides>& places, const Sides& box,
                          const std::array<bool, 3>& closed) {
  Sides sides{};
  for (std::size_t d = 0; d < 3; ++d) {
    std::set<std::uint32_t> at;
    for (const Sides& place : places) at.insert(place[d]);
    std::uint32_t gaps = 0;
    for (const std::uint32_t place : at) {
      const bool last = place + 1 == box[d];
      if (at.count(closed[d] && last ? 0 : place + 1) == 0) ++gaps;
    }
    const bool all = at.size() == box[d];
    if (gaps != 1 && !(all && closed[d])) return {};
    sides[d] = static_cast<std::uint32_t>(at.size());
  }
  const std::set<Sides> distinct(places.begin(), places.end());
  if (distinct.size() != volume(sides) || places.size() != volume(sides)) return {};
  std::sort(sides.begin(), sides.end());
  return sides;
}

/// Why an allocation is no slice with these sides; empty if it is one.
inline std::string slice_fault(const Topology& topology, const Allocation& allocation,
                               Sides slice) {
  for (std::uint32_t& side : slice) side = std::max(side, 1U);
  std::sort(slice.begin(), slice.end());
  if (allocation.ranks.empty()) return "nothing";
  const NodeId first = allocation.ranks.front().node;
  const TorusGrid grid = TorusGrid::of(topology.group(first)).value();
  const std::uint32_t base = torus_base(topology, first);
  std::vector<Sides> places;
  std::map<std::uint32_t, std::uint32_t> cubes;
  for (const DeviceId device : devices_of(topology, allocation.ranks)) {
    if (device.value() - base >= volume(grid.sides())) return "in two tori";
    places.push_back(grid.coordinates(device.value() - base));
    ++cubes[grid.cube_of(device.value() - base)];
  }
  if (!grid.has_cubes()) {
    return cuboid_sides(places, grid.sides(), grid.closed()) == slice ? "" : "no such cuboid";
  }
  if (cubes.size() == 1 && volume(slice) < volume(grid.cube())) {
    return cuboid_sides(places, grid.sides(), {}) == slice ? "" : "no such cuboid in its cube";
  }
  for (const auto& [cube, devices] : cubes) {
    if (devices != volume(grid.cube())) return "part of a cube";
  }
  return places.size() == volume(slice) ? "" : "another number of cubes";
}

/// Whether a slice is free, found by trying every cuboid of every torus, or of every cube, device
/// by device.
inline bool any_slice(const FleetView& view, Sides slice) {
  const Topology& topology = view.topology();
  for (std::uint32_t n = 0; n < topology.node_count(); ++n) {
    const NodeId node(n);
    if (topology.place(node).scale_up_first != node) continue;
    const TorusGrid grid = TorusGrid::of(topology.group(node)).value();
    const std::uint32_t base = torus_base(topology, node);
    const auto free_at = [&](const Sides& at) {
      const DeviceId device(base + grid.device(at));
      const NodeId of = topology.node_of(device);
      const std::uint32_t bit = device.value() - topology.place(of).first_device.value();
      return view.node(of).available() > 0 && (view.node(of).free_mask >> bit & 1) != 0;
    };
    std::sort(slice.begin(), slice.end());
    do {
      for (std::uint32_t corner = 0; corner < volume(grid.sides()); ++corner) {
        const Sides from = grid.coordinates(corner);
        bool free = true;
        for (std::uint32_t i = 0; i < volume(slice) && free; ++i) {
          Sides at{i % slice[0], i / slice[0] % slice[1], i / slice[0] / slice[1]};
          for (std::size_t d = 0; d < 3; ++d) {
            const std::uint32_t end = grid.has_cubes()
                                          ? (from[d] / grid.cube()[d] + 1) * grid.cube()[d]
                                          : grid.sides()[d];
            at[d] += from[d];
            const bool over = at[d] >= end;
            free = free && slice[d] <= grid.cube()[d];
            free = free && (!over || (!grid.has_cubes() && grid.closed()[d]));
            at[d] %= grid.sides()[d];
          }
          free = free && free_at(at);
        }
        if (free) return true;
      }
    } while (std::next_permutation(slice.begin(), slice.end()));
  }
  return false;
}

}  // namespace orrery
