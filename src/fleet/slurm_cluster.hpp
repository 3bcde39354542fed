// fleet/slurm_cluster.hpp - the nodes and switches a Slurm configuration tells of.
//
// Read from a directory with slurm.conf, gres.conf and topology.conf, the last two optional.
#pragma once

#include <string>

#include "base/error.hpp"
#include "fleet/imported_cluster.hpp"
#include "hardware/catalog.hpp"

namespace orrery {

/// Reads `directory`. Errors (kInput, with file:line): whatever read_slurm_conf refuses, host lists
/// that are none, nodes or switches that stand twice or nowhere, GPU types the catalog does not
/// have, nodes it has no type for, several GPU types on one node, switches that are no tree.
/// `catalog` must outlive the cluster. Cost O(bytes + nodes).
[[nodiscard]] Result<ImportedCluster> read_slurm_cluster(const Catalog& catalog,
                                                         const std::string& directory);

}  // namespace orrery
