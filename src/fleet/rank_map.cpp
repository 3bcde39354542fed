#include "fleet/rank_map.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace orrery {
namespace {

tl::unexpected<Rejection> refuse(std::string reason, std::vector<std::string> blocking = {}) {
  return tl::unexpected(Rejection{RejectionKind::kNever, std::move(blocking), std::move(reason)});
}

std::uint64_t count_devices(std::span<const NodeDevices> gang) {
  std::uint64_t count = 0;
  for (const NodeDevices& part : gang) {
    count += static_cast<std::uint64_t>(std::popcount(part.devices));
  }
  return count;
}

}  // namespace

std::vector<NodeDevices> nodes_of(std::span<const DeviceId> devices, const Topology& topology) {
  std::vector<NodeDevices> gang;
  std::uint32_t first = 0;
  std::uint32_t end = 0;  // devices of the last node found
  for (const DeviceId device : devices) {
    if (device.value() >= end) {
      const NodeId node = topology.node_of(device);
      first = topology.place(node).first_device.value();
      end = first + topology.group(node).devices;
      gang.push_back({node, 0});
    }
    gang.back().devices |= std::uint64_t{1} << (device.value() - first);
  }
  return gang;
}

tl::expected<void, Rejection> check_ranks(const ParallelPlan& plan,
                                          std::span<const NodeDevices> gang,
                                          const Topology& topology) {
  if (const std::uint64_t count = count_devices(gang); count != plan.ranks()) {
    return refuse(fmt::format("the plan has {} ranks, there are {} devices", plan.ranks(), count));
  }
  std::vector<std::string> blocking;
  for_each_domain_share(gang, topology, [&](NodeId node, std::uint32_t devices) {
    if (devices % plan.tp == 0) return;
    std::string name = topology.node_name(node);
    if (blocking.empty() || blocking.back() != name) blocking.push_back(std::move(name));
  });
  if (blocking.empty()) return {};
  return refuse(
      fmt::format("a tensor-parallel group of {} would leave its scale-up domain", plan.tp),
      std::move(blocking));
}

tl::expected<RankMap, Rejection> map_ranks(const ParallelPlan& plan,
                                           std::span<const NodeDevices> gang,
                                           const Topology& topology) {
  if (auto checked = check_ranks(plan, gang, topology); !checked) {
    return tl::unexpected(std::move(checked.error()));
  }
  RankMap map;
  map.devices.reserve(plan.ranks());
  for (const NodeDevices& part : gang) {
    const std::uint32_t first = topology.place(part.node).first_device.value();
    for (std::uint64_t left = part.devices; left != 0; left &= left - 1) {
      map.devices.emplace_back(first + static_cast<std::uint32_t>(std::countr_zero(left)));
    }
  }
  return map;
}

tl::expected<RankMap, Rejection> map_ranks(const ParallelPlan& plan,
                                           std::span<const DeviceId> devices,
                                           const Topology& topology) {
  std::vector<DeviceId> sorted(devices.begin(), devices.end());
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    return refuse("a device stands twice");
  }
  return map_ranks(plan, nodes_of(sorted, topology), topology);
}

}  // namespace orrery
