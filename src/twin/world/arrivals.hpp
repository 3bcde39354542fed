// twin/world/arrivals.hpp - nodes that are ordered and not there yet: delivered after a lead time,
// over a while, or never.
//
// Control knows such nodes from the begin as drained ones, so that requests for them wait and are
// not refused; the world lets nothing happen to them before delivery. Values; a pure function of
// its inputs.
#pragma once

#include <span>
#include <vector>

#include "control/input.hpp"
#include "fleet/topology.hpp"

namespace orrery {

/// Nodes with accelerators of a type come one by one, evenly over a while.
struct Delivery {
  FleetTypeId type;
  Duration after;  ///< the begin, the first node; max: none ever comes
  Duration over;   ///< from the first to the last
};

/// The time at which each node is there; of two deliveries of a type the later one holds. O(nodes x
/// deliveries).
[[nodiscard]] std::vector<Instant> arrivals_of(const Topology& topology,
                                               std::span<const Delivery> deliveries, Instant begin);

/// The commands that report deliveries to control, by time. Empty: all nodes are there.
[[nodiscard]] std::vector<Input> arrival_commands(std::span<const Instant> arrivals, Instant begin);

}  // namespace orrery
