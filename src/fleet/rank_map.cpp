#include "fleet/rank_map.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace orrery {
namespace {

// First device of the scale-up domain a device is in: domains inside a node are runs of its
// devices.
DeviceId scale_up_start(const Topology& topology, DeviceId device) {
  const NodeId node = topology.node_of(device);
  const NodeGroup& group = topology.group(node);
  const NodePlace& place = topology.place(node);
  if (place.scale_up_first != node || group.scale_up_devices > group.devices || group.torus) {
    return topology.place(place.scale_up_first).first_device;
  }
  const std::uint32_t position = device.value() - place.first_device.value();
  return DeviceId(place.first_device.value() +
                  position / group.scale_up_devices * group.scale_up_devices);
}

}  // namespace

tl::expected<RankMap, Rejection> map_ranks(const ParallelPlan& plan,
                                           std::span<const DeviceId> devices,
                                           const FleetView& view) {
  const auto refuse = [](std::string reason, std::vector<std::string> blocking = {}) {
    return tl::unexpected(Rejection{RejectionKind::kNever, std::move(blocking), std::move(reason)});
  };
  if (devices.size() != plan.ranks()) {
    return refuse(
        fmt::format("the plan has {} ranks, there are {} devices", plan.ranks(), devices.size()));
  }
  RankMap map{{devices.begin(), devices.end()}};
  std::sort(map.devices.begin(), map.devices.end());
  if (std::adjacent_find(map.devices.begin(), map.devices.end()) != map.devices.end()) {
    return refuse("a device stands twice");
  }
  std::vector<std::string> blocking;
  const Topology& topology = view.topology();
  for (std::size_t first = 0; first < map.devices.size();) {
    const DeviceId start = scale_up_start(topology, map.devices[first]);
    std::size_t end = first;
    while (end < map.devices.size() && scale_up_start(topology, map.devices[end]) == start) ++end;
    if ((end - first) % plan.tp != 0) {
      blocking.push_back(topology.node_name(topology.node_of(map.devices[first])));
    }
    first = end;
  }
  if (!blocking.empty()) {
    return refuse(
        fmt::format("a tensor-parallel group of {} would leave its scale-up domain", plan.tp),
        std::move(blocking));
  }
  return map;
}

}  // namespace orrery
