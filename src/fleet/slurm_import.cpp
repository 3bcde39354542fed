#include "fleet/slurm_import.hpp"

#include "fleet/imported_spec.hpp"
#include "fleet/slurm_cluster.hpp"

namespace orrery {

Result<FleetSpec> import_slurm(const Catalog& catalog, const std::string& directory) {
  Result<ImportedCluster> cluster = read_slurm_cluster(catalog, directory);
  if (!cluster) return forward_error(cluster);
  return spec_of_import(catalog, *cluster);
}

}  // namespace orrery
