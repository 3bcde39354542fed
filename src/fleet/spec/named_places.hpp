// fleet/spec/named_places.hpp - parts of a fleet by the names that people give them: nodes,
// domains, power domains, and the links above a node.
//
// Pure. O(nodes + domains).
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "fleet/topology.hpp"

namespace orrery {

/// Finds a node by its name, or all nodes of a domain by its path, ascending. Error: neither
/// exists, at `where`.
[[nodiscard]] Result<std::vector<NodeId>> nodes_named(const Topology& topology,
                                                      std::string_view name,
                                                      const SourcePosition& where);

/// Finds a power domain by its name. Error: there is none, at `where`, with the existing names.
[[nodiscard]] Result<PowerDomainId> power_domain_named(const Topology& topology,
                                                       std::string_view name,
                                                       const SourcePosition& where);

/// Returns the links from the leaf switches of nodes to the level above, each once. `nodes`
/// ascends.
[[nodiscard]] std::vector<LinkId> uplinks_of(const Topology& topology,
                                             std::span<const NodeId> nodes);

}  // namespace orrery
