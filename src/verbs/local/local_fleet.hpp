// verbs/local/local_fleet.hpp - the fleet of a local cluster: the files that `orrery up` writes
// where there are none, and the nodes to start for an existing fleet.
//
// DIR/fleet.yaml describes the fleet; a node with fewer accelerators than its type usually has gets
// its own type, in DIR/catalog/nodes.yaml.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/env.hpp"

namespace orrery {

/// The options that were given; the rest has defaults.
struct LocalFleetOptions {
  std::optional<int> nodes;
  std::optional<int> accelerators;  ///< accelerators on each node
  std::string type;

  [[nodiscard]] bool any() const { return nodes || accelerators || !type.empty(); }
};

struct LocalNode {
  std::string name;
  std::string type;  ///< catalog id of its accelerators
  std::uint32_t accelerators = 0;
};

/// Writes the files, and makes the directory, unless a fleet is there; nodes are named node-0 and
/// so on. Errors (kInput): numbers below 1, more than the type's usual node has, an unknown type, a
/// different fleet that is there.
[[nodiscard]] Status write_local_fleet(Storage& storage, const std::string& directory,
                                       const LocalFleetOptions& options);

/// Removes the files that write_local_fleet() has made for a cluster that then was not started,
/// unless a log has begun or is planned there.
void remove_unused_fleet(const std::string& directory);

/// Returns the names of the nodes that a resource manager lends, according to DIR/managers.yaml.
/// Errors: those of the file.
[[nodiscard]] Result<std::set<std::string>> read_lent_nodes(const std::string& directory);

/// Returns the nodes of the fleet there, in its order. Errors: those of the files.
[[nodiscard]] Result<std::vector<LocalNode>> read_local_fleet(const std::string& directory);

}  // namespace orrery
