// fleet/svg.hpp - a fleet as one picture: what it adds up to, its sites, networks, racks and power.
//
// A self-contained SVG 1.1 document of 1,200 pixels across, without scripts or fonts of its own.
// What repeats is sampled and counted, so that any fleet stays below about 2,000 shapes and 1 MB.
// Pure: equal fleets give equal bytes. Cost: O(domains + switches).
#pragma once

#include <string>

#include "fleet/summary.hpp"
#include "fleet/topology.hpp"

namespace orrery {

/// Precondition: `summary` is that of `topology`.
[[nodiscard]] std::string draw_svg(const Topology& topology, const FleetSummary& summary);

}  // namespace orrery
