// fleet/import/slurm_cluster.hpp - the nodes and switches that a Slurm configuration describes.
//
// Read from a directory with slurm.conf and, if they exist, gres.conf and topology.yaml or, without
// the latter, topology.conf.
#pragma once

#include <string>

#include "base/error.hpp"
#include "fleet/import/imported_cluster.hpp"
#include "hardware/catalog.hpp"

namespace orrery {

/// Reads `directory`. Errors (kInput, with file:line): whatever read_slurm_conf and
/// read_topology_yaml refuse, invalid host lists, nodes or switches that are duplicate or missing,
/// GPU types that the catalog does not have, nodes it has no type for, several GPU types on one
/// node, switches that are not a tree. `catalog` must outlive the cluster. Cost O(bytes + nodes).
[[nodiscard]] Result<ImportedCluster> read_slurm_cluster(const Catalog& catalog,
                                                         const std::string& directory);

}  // namespace orrery
