// fleet/import/kubernetes_import.hpp - a fleet spec from the nodes of a Kubernetes cluster.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "fleet/spec/spec.hpp"
#include "hardware/catalog.hpp"

namespace orrery {

/// Most bytes of text that are read, also after unpacking a gzip file.
inline constexpr std::size_t kKubernetesBytesMax = std::size_t{256} << 20;

/// Returns the spec of the cluster whose nodes `text` lists, as `kubectl get nodes -o json` prints
/// them (other kinds of items are skipped): nodes with accelerators get the type that their labels
/// name and the number that they have, the others the catalog's default `cpu` node; control plane
/// nodes are left out. Racks and pods are the leaves and spines of the labels
/// network.topology.nvidia.com/leaf and spine. Errors (kInput, with the line of the node): no such
/// list, no node, a node of a type that the catalog does not have, without a type, or twice.
[[nodiscard]] Result<FleetSpec> read_kubernetes_fleet(const Catalog& catalog, std::string_view text,
                                                      const std::string& file);

/// Imports the cluster from a file, plain or gzip; "-" is standard input.
[[nodiscard]] Result<FleetSpec> import_kubernetes(const Catalog& catalog, const std::string& path);

}  // namespace orrery
