// fleet/import/slurm_import.hpp - a fleet spec from a Slurm configuration directory.
#pragma once

#include <string>

#include "base/error.hpp"
#include "fleet/spec/spec.hpp"
#include "hardware/catalog.hpp"

namespace orrery {

/// Returns the spec of the cluster that slurm.conf (with gres.conf and topology.yaml or
/// topology.conf, if they exist) describes: a pod for each second-level switch, a rack for each
/// leaf, or as many equal racks as cooling needs, every node under its own name. What Slurm does
/// not state is chosen and named in the description: node types, cooling, the kind of network.
/// Errors (kInput): those of read_slurm_cluster. The spec's positions are those of the Slurm files.
[[nodiscard]] Result<FleetSpec> import_slurm(const Catalog& catalog, const std::string& directory);

}  // namespace orrery
