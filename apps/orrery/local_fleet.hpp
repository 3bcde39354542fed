// apps/orrery/local_fleet.hpp - the fleet of a local cluster: what `orrery up` writes where there
// is none, and what is to be started for the one that is there.
//
// DIR/fleet.yaml says all; a node with fewer accelerators than its type usually has is a type of
// its own, in DIR/catalog/nodes.yaml.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/orrery/context.hpp"
#include "base/env.hpp"

namespace orrery {

/// What was asked for; the rest has defaults.
struct LocalFleetOptions {
  std::optional<int> nodes;
  std::optional<int> accelerators;  ///< of a node
  std::string type;

  [[nodiscard]] bool any() const { return nodes || accelerators || !type.empty(); }
};

struct LocalNode {
  std::string name;
  std::string type;  ///< catalog id of its accelerators
  std::uint32_t accelerators = 0;
};

/// Writes the files, and makes the directory, unless a fleet is there; nodes are named node-0 and
/// so on. Errors (kInput): numbers below 1, more than the type's usual node has, an unknown type,
/// a fleet there
/// that is another one.
[[nodiscard]] Status write_local_fleet(Storage& storage, const std::string& directory,
                                       const LocalFleetOptions& options);

/// The nodes of the fleet there, in its order. Errors: of the files.
[[nodiscard]] Result<std::vector<LocalNode>> read_local_fleet(const std::string& directory);

}  // namespace orrery
