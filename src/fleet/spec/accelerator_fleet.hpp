// fleet/spec/accelerator_fleet.hpp - a fleet from nothing but types and numbers of accelerators.
//
// Every type gets its usual nodes in racks that air or liquid can cool, a network of its own, and
// no power limit except that of the racks, which covers their ratings. Scale-up domains are as
// large as the number allows: whole ones first, then the remainder. A plain value; its assumptions
// list what had to be chosen.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "fleet/spec/spec.hpp"
#include "hardware/catalog.hpp"

namespace orrery {

struct AcceleratorCount {
  std::string type;  ///< id or alias
  int count = 0;
};

struct AcceleratorFleetOptions {
  std::vector<AcceleratorCount> accelerators;
  std::optional<int> node_accelerators;  ///< per node; none: as in the type's usual node
};

struct AcceleratorFleet {
  FleetSpec spec;
  /// Smaller nodes that the spec names and the catalog lacks: build_topology needs
  /// catalog.with(nodes).
  std::vector<NodeType> nodes;
  std::vector<std::string> assumptions;
};

/// Makes one site and hall, with a fabric and pods for each type: whole scale-up domains, the
/// remaining nodes, and a smaller last node if the number is not a multiple of the node's. Smaller
/// nodes are parts of the usual one (hardware/node_part.hpp), joined only inside; a last node keeps
/// the NICs of the others, because a fabric needs equal NICs. Fabrics are fat trees with one leaf
/// per NIC, without oversubscription, of the kind that the reference systems with that node have,
/// else of the slowest Ethernet port that is fast enough for a NIC. If three levels of its switches
/// hold too few nodes, switches get the necessary multiple of ports. Errors (kInput): no types, an
/// unknown one (names the nearest), a duplicate one, a number below 1 or above 1,048,576, more
/// accelerators per node than the usual node has. O(nodes) at most.
[[nodiscard]] Result<AcceleratorFleet> fleet_of_accelerators(
    const Catalog& catalog, const AcceleratorFleetOptions& options);

}  // namespace orrery
