// fleet/rank_map.hpp - which device each rank of a plan runs on.
//
// Computed only here: the planner maps onto canonical sub-topologies, the scheduler onto real
// devices, and the cost model takes the map as input.
#pragma once

#include <span>
#include <vector>

#include "base/rejection.hpp"
#include "fleet/ids.hpp"
#include "fleet/view.hpp"
#include "workload/parallel_plan.hpp"

namespace orrery {

/// Rank r = ((p * dp + d) * cp + c) * tp + t runs on devices[r]: tensor-parallel neighbours lie
/// next to each other, then context, data and pipeline parallel ones, as in Megatron Core.
struct RankMap {
  std::vector<DeviceId> devices;
};

/// Ranks of a plan onto exactly plan.ranks() distinct devices. A tensor-parallel group never leaves
/// its scale-up domain; inside a domain groups take devices in ascending order, so that equal
/// positions of different nodes, which are the ends of data-parallel rings, share a rail. Domains
/// follow each other in topology order, so context and data-parallel neighbours are as near as can
/// be. Rejection (kNever): the wrong number of devices, one twice, or a domain whose devices are no
/// multiple of tp; `blocking` names those domains' first nodes. Ties by ascending DeviceId.
/// O(n log n).
[[nodiscard]] tl::expected<RankMap, Rejection> map_ranks(const ParallelPlan& plan,
                                                         std::span<const DeviceId> devices,
                                                         const FleetView& view);

}  // namespace orrery
