// fleet/import/imported_spec.hpp - makes a fleet spec of a cluster that another system describes.
#pragma once

#include "fleet/import/imported_cluster.hpp"
#include "fleet/spec/spec.hpp"
#include "hardware/catalog.hpp"

namespace orrery {

/// Makes a pod for each pod of the cluster, and a rack for each leaf, or as many equal racks as
/// cooling needs, with every node under its own name. What is unknown is chosen and named in the
/// description: node types, cooling, the kind of network. O(nodes).
[[nodiscard]] FleetSpec spec_of_import(const Catalog& catalog, const ImportedCluster& cluster);

}  // namespace orrery
