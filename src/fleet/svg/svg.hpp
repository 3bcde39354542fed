// fleet/svg/svg.hpp - a fleet as one picture: its totals, sites, networks, racks and power.
//
// A self-contained SVG 1.1 document of 1,200 pixels across, without scripts or fonts of its own.
// Repeated parts are sampled and counted, so that any fleet stays below about 2,000 shapes and 1
// MB. A pure function: equal fleets give equal bytes. Cost: O(domains + switches).
#pragma once

#include <string>

#include "fleet/spec/summary.hpp"
#include "fleet/topology.hpp"

namespace orrery {

/// Precondition: `summary` is that of `topology`.
[[nodiscard]] std::string draw_svg(const Topology& topology, const FleetSummary& summary);

}  // namespace orrery
