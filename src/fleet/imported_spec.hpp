// fleet/imported_spec.hpp - a fleet spec of what another system tells of a cluster.
#pragma once

#include "fleet/imported_cluster.hpp"
#include "fleet/spec.hpp"
#include "hardware/catalog.hpp"

namespace orrery {

/// A pod for each of the cluster's, a rack a leaf, or as many equal racks as cooling asks for,
/// every node under its own name. What was not told is chosen and named in the description: node
/// types, cooling, the kind of network. O(nodes).
[[nodiscard]] FleetSpec spec_of_import(const Catalog& catalog, const ImportedCluster& cluster);

}  // namespace orrery
