// scheduler/running_test.hpp - fleets full of running gangs, for tests of which jobs make room.
#pragma once

#include <algorithm>
#include <bit>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/numbers/rng.hpp"
#include "fleet/fleet.hpp"
#include "fleet/fleet_test.hpp"
#include "scheduler/place/placer.hpp"
#include "scheduler/preempt/preemption.hpp"

namespace orrery {

/// Racks of DGX H100 with eight accelerators a node, in one pod.
inline std::string h100_racks(int racks, int nodes) {
  return one_hall(fmt::format(
      "    - name: su\n      racks:\n      - count: {}\n        cooling: in-row-or-dense-air\n"
      "        nodes: [{{type: dgx-h100, count: {}}}]\n",
      racks, nodes));
}

/// Racks of GB200 NVL72: 18 trays of four accelerators, one scale-up domain each.
inline std::string nvl72_racks(int racks) {
  return one_hall(fmt::format(
      "    - name: su\n      racks:\n      - count: {}\n        cooling: direct-liquid-hybrid\n"
      "        nodes: [{{type: gb200-nvl72-tray, count: 18}}]\n",
      racks));
}

/// A live fleet, what runs on it, and a placer.
struct RunningFleet {
  explicit RunningFleet(const std::string& yaml)
      : fleet(built(yaml)), tree(fleet.topology()), placer(tree) {}
  RunningFleet(const RunningFleet&) = delete;
  RunningFleet& operator=(const RunningFleet&) = delete;

  /// Starts a gang on given devices; returns its position.
  std::uint32_t start(Allocation allocation, std::int64_t cost, const HostNeeds& host = {}) {
    take(fleet, allocation, host);
    allocations.push_back(std::move(allocation));
    held.push_back({&allocations.back(), host});
    costs.push_back(cost);
    return static_cast<std::uint32_t>(held.size() - 1);
  }
  std::uint32_t start(std::vector<NodeDevices> ranks, std::int64_t cost) {
    return start(Allocation{std::move(ranks), {}, kWholeDevice}, cost);
  }

  /// Starts a gang of so many devices on nodes drawn at random; false when there are too few.
  bool start_anywhere(std::uint32_t devices, std::int64_t cost, Rng& rng) {
    const std::uint32_t nodes = fleet.topology().node_count();
    if (fleet.view().free(Topology::root(), FleetTypeId(0)).devices < devices) return false;
    std::vector<NodeDevices> ranks;
    auto node = static_cast<std::uint32_t>(rng.below(nodes));
    for (; devices > 0; node = (node + 1) % nodes) {
      std::uint64_t free = fleet.view().node(NodeId(node)).free_mask;
      std::uint64_t chosen = 0;
      for (; free != 0 && devices > 0; free &= free - 1, --devices) chosen |= free & (~free + 1);
      if (chosen != 0) ranks.push_back({NodeId(node), chosen});
    }
    std::sort(ranks.begin(), ranks.end(),
              [](const NodeDevices& a, const NodeDevices& b) { return a.node < b.node; });
    start(std::move(ranks), cost);
    return true;
  }

  /// Every running gang as a victim of one gang.
  [[nodiscard]] std::vector<Victim> victims() const {
    std::vector<Victim> all;
    for (std::size_t i = 0; i < held.size(); ++i) {
      all.push_back({.gangs = std::span(&held[i], 1), .cost = costs[i]});
    }
    return all;
  }

  [[nodiscard]] PlaceTry place(const GangRequest& request) {
    return [this, request](const FleetView& view) -> std::optional<std::vector<PlacedGang>> {
      AllocationOrRefusal found = placer.place(view, request);
      if (!found) return std::nullopt;
      std::vector<PlacedGang> gangs(1);
      gangs[0].allocation = *std::move(found);
      gangs[0].host = request.host;
      return gangs;
    };
  }

  Fleet fleet;
  PlaceTree tree;
  Placer placer;
  std::deque<Allocation> allocations;
  std::deque<HeldGang> held;
  std::vector<std::int64_t> costs;
};

/// A gang on the first type, with `node_devices` on each node.
inline GangRequest gang_of(std::uint32_t devices, std::uint32_t node_devices,
                           TopologyLevel required = TopologyLevel::kFleet) {
  return {.type = FleetTypeId(0),
          .devices = devices,
          .node_devices = node_devices,
          .required = required};
}

}  // namespace orrery
