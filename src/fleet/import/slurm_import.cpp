#include "fleet/import/slurm_import.hpp"

#include "fleet/import/imported_spec.hpp"
#include "fleet/import/slurm_cluster.hpp"

namespace orrery {

Result<FleetSpec> import_slurm(const Catalog& catalog, const std::string& directory) {
  Result<ImportedCluster> cluster = read_slurm_cluster(catalog, directory);
  if (!cluster) return forward_error(cluster);
  return spec_of_import(catalog, *cluster);
}

}  // namespace orrery
