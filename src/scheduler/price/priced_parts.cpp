#include "scheduler/price/priced_parts.hpp"

#include <bit>

namespace orrery {

std::array<PricedPart, 2> priced_parts(const FleetCosts& costs, const Topology& topology,
                                       const Allocation& allocation) {
  const NodeId first = allocation.ranks.front().node;
  std::array<PricedPart, 2> parts{};
  parts[0].costs = costs.at(topology, first);
  if (costs.uniform()) {
    parts[0].devices = allocation.devices();
    return parts;
  }
  const NodeOwnership ownership = topology.group(first).ownership;
  for (const NodeDevices& at : allocation.ranks) {
    const bool same = topology.group(at.node).ownership == ownership;
    PricedPart& part = parts[same ? 0 : 1];
    if (!same) part.costs = costs.at(topology, at.node);
    part.devices += std::popcount(at.devices);
  }
  return parts;
}

}  // namespace orrery
