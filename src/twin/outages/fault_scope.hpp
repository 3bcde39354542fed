// twin/outages/fault_scope.hpp - the nodes and links that a fault strikes.
//
// Pure functions of the topology. A switch fails with its links; a fault of a link or a supply
// strikes no node directly.
#pragma once

#include <vector>

#include "fleet/topology.hpp"
#include "twin/faults/fault.hpp"

namespace orrery {

/// Ascending.
[[nodiscard]] std::vector<NodeId> nodes_struck(const Topology& topology, const FaultScope& scope);
/// For a switch, O(links of the fabric).
[[nodiscard]] std::vector<LinkId> links_struck(const Topology& topology, const FaultScope& scope);
/// The node of a port; none: the link is one between switches.
[[nodiscard]] NodeId node_of_port(const Topology& topology, LinkId link);

}  // namespace orrery
