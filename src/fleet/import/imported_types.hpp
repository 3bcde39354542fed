// fleet/import/imported_types.hpp - node types of the catalog for nodes of which another system
// names only the accelerators.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.hpp"
#include "fleet/import/imported_cluster.hpp"
#include "hardware/catalog.hpp"

namespace orrery {

/// Finds an accelerator by its id or an alias, in which '_' may stand for a blank or a dash; null:
/// there is none.
[[nodiscard]] const Accelerator* find_imported_accelerator(const Catalog& catalog,
                                                           const std::string& type);

/// Chooses node types and notes the choices in the cluster. Catalog and cluster must outlive it.
class ImportedTypes {
 public:
  ImportedTypes(const Catalog& catalog, ImportedCluster& cluster)
      : catalog_(catalog), cluster_(cluster) {}

  /// Returns a node type with `count` of an accelerator. Errors: no such accelerator (names the
  /// nearest), no node type with that number of them.
  [[nodiscard]] Result<const NodeType*> with_accelerators(const std::string& type, int count,
                                                          const SourcePosition& where);

  /// Returns the default node of the accelerator called "cpu", and counts it in the cluster.
  [[nodiscard]] Result<const NodeType*> without_accelerators(const SourcePosition& where);

 private:
  void note_choice(const NodeType& chosen, const std::vector<const NodeType*>& fitting);

  const Catalog& catalog_;
  ImportedCluster& cluster_;
  std::unordered_map<std::string, const NodeType*> chosen_;  ///< by "COUNT:TYPE"
};

}  // namespace orrery
