// fleet/rank_map.hpp - which devices a gang holds, and which of them each rank of a plan runs on.
//
// Computed only here: the planner maps onto canonical sub-topologies, the scheduler onto real
// devices, and the cost model takes the outcome as input. A gang is a few masks, one per node; the
// list of its ranks is made only for the launch.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "base/rejection.hpp"
#include "fleet/ids.hpp"
#include "fleet/view.hpp"
#include "workload/parallel_plan.hpp"

namespace orrery {

/// Groups devices by node. Precondition: ascending devices, each once. O(n + nodes log nodes of the
/// fleet).
[[nodiscard]] std::vector<NodeDevices> nodes_of(std::span<const DeviceId> devices,
                                                const Topology& topology);

/// Calls share(first node, devices) for each scale-up domain a gang lies in, in order: its first
/// node there, and how many devices it has there. Devices without such links count by node, since
/// the host joins them. O(nodes), no allocation.
template <class Share>
void for_each_domain_share(std::span<const NodeDevices> gang, const Topology& topology,
                           Share&& share) {
  for (std::size_t at = 0; at < gang.size();) {
    const NodeId node = gang[at].node;
    const NodeGroup& group = topology.group(node);
    const NodeId domain = topology.place(node).scale_up_first;
    if (group.scale_up_devices > group.devices || group.torus) {
      std::uint32_t devices = 0;
      for (; at < gang.size() && topology.place(gang[at].node).scale_up_first == domain; ++at) {
        devices += static_cast<std::uint32_t>(std::popcount(gang[at].devices));
      }
      share(node, devices);
      continue;
    }
    // Domains inside a node are runs of its devices.
    const std::uint32_t size = group.scale_up_devices > 1
                                   ? group.scale_up_devices
                                   : std::max<std::uint32_t>(1, group.devices);
    const std::uint64_t one = size >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << size) - 1;
    for (std::uint64_t left = gang[at].devices; left != 0;) {
      const std::uint32_t first = static_cast<std::uint32_t>(std::countr_zero(left)) / size * size;
      share(node, static_cast<std::uint32_t>(std::popcount(left & (one << first))));
      left &= ~(one << first);
    }
    ++at;
  }
}

/// Rank r = ((p * dp + d) * cp + c) * tp + t runs on devices[r]: tensor-parallel neighbours are
/// next to each other, then context, data and pipeline parallel ones, as in Megatron Core.
struct RankMap {
  std::vector<DeviceId> devices;
};

/// Whether a gang can hold the ranks of a plan: exactly plan.ranks() devices, and no
/// tensor-parallel group leaves its scale-up domain (its node, where no links join the devices).
/// Rejection (kNever): the wrong number of devices, or a domain whose devices are no multiple of
/// tp; `blocking` names those domains' first nodes. O(nodes), no allocation unless it rejects.
[[nodiscard]] tl::expected<void, Rejection> check_ranks(const ParallelPlan& plan,
                                                        std::span<const NodeDevices> gang,
                                                        const Topology& topology);

/// Returns the map, or the rejection of check_ranks(): inside a domain groups take devices in
/// ascending order, so that equal positions of different nodes, which are the ends of data-parallel
/// rings, share a rail. Domains are in topology order, so context- and data-parallel neighbours are
/// as near as possible. O(devices).
[[nodiscard]] tl::expected<RankMap, Rejection> map_ranks(const ParallelPlan& plan,
                                                         std::span<const NodeDevices> gang,
                                                         const Topology& topology);

/// Returns the map for devices in any order; a duplicate device is a rejection. O(n log n).
[[nodiscard]] tl::expected<RankMap, Rejection> map_ranks(const ParallelPlan& plan,
                                                         std::span<const DeviceId> devices,
                                                         const Topology& topology);

}  // namespace orrery
