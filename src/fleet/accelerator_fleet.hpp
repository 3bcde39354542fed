// fleet/accelerator_fleet.hpp - a fleet from nothing but types and numbers of accelerators.
//
// Every type gets its usual nodes in racks that air or liquid can cool, a network of its own, and
// no limit on power but that of the racks, which holds their ratings. Scale-up domains are as large
// as the number fills: whole ones first, then what is left over. A value; what had to be chosen is
// said in its assumptions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "fleet/spec.hpp"
#include "hardware/catalog.hpp"

namespace orrery {

struct AcceleratorCount {
  std::string type;  ///< id or alias
  int count = 0;
};

struct AcceleratorFleetOptions {
  std::vector<AcceleratorCount> accelerators;
  std::optional<int> node_accelerators;  ///< of every node; none: as the type's usual node has
};

struct AcceleratorFleet {
  FleetSpec spec;
  /// Smaller nodes that the spec names and the catalog lacks: build_topology needs
  /// catalog.with(nodes).
  std::vector<NodeType> nodes;
  std::vector<std::string> assumptions;
};

/// One site and hall, a fabric a type, pods a type: whole scale-up domains, the rest of them, and a
/// last node where the number fills no whole one. Smaller nodes are parts of the usual one
/// (hardware/node_part.hpp), joined inside alone; a last node keeps the NICs of the others, as one
/// fabric wants it. Fabrics are fat trees, a leaf a NIC, without oversubscription, of the kind the
/// reference systems with that node have, else of the least Ethernet port that holds a NIC. Where
/// three levels of its switches hold fewer nodes, switches have as many times the ports as it
/// takes. Errors (kInput): no types, an unknown one (names the nearest), one given twice, a number
/// below 1 or above 1,048,576, more accelerators a node than the usual node has. O(nodes) at most.
[[nodiscard]] Result<AcceleratorFleet> fleet_of_accelerators(
    const Catalog& catalog, const AcceleratorFleetOptions& options);

}  // namespace orrery
