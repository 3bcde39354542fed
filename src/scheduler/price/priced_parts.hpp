// scheduler/price/priced_parts.hpp - the devices of a gang by cost: those the operator owns and
// those it rents are paid differently, though a gang may hold both.
//
// Prices of placements and bills of jobs are sums over these parts. Values, pure.
#pragma once

#include <array>

#include "scheduler/price/fleet_costs.hpp"
#include "scheduler/request/gang.hpp"

namespace orrery {

struct PricedPart {
  const DeviceCosts* costs = nullptr;  ///< nullptr: costs are unknown
  double devices = 0;                  ///< whole devices, even where the gang has a share of each
};

/// The second part has no devices if all are owned or all are rented. O(1), or O(nodes of the gang)
/// where a site has a type both owned and rented.
[[nodiscard]] std::array<PricedPart, 2> priced_parts(const FleetCosts& costs,
                                                     const Topology& topology,
                                                     const Allocation& allocation);

}  // namespace orrery
