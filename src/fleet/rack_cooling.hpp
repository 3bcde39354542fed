// fleet/rack_cooling.hpp - how many nodes a rack takes and which cooling class holds them: the
// choices made for specs that a program writes.
#pragma once

#include "base/quantity.hpp"
#include "hardware/catalog.hpp"

namespace orrery {

/// The rating of a node, else the top of its assumed range, else zero.
[[nodiscard]] Watts planned_power(const NodeType& type);

/// Whether racks of such nodes may be cooled so in an ordinary machine room: air in its steps for
/// air-cooled nodes, direct liquid for the others.
[[nodiscard]] bool suits(const CoolingClass& cooling, const NodeType& type);

/// The least suitable class that holds a load, ties by position; nullptr: none does.
[[nodiscard]] const CoolingClass* least_cooling(const Catalog& catalog, const NodeType& type,
                                                Watts load);

/// Nodes that the densest suitable class, and a scale-up domain that fills its rack, allow; at
/// least 1, at most `most`.
[[nodiscard]] int rack_nodes_max(const Catalog& catalog, const NodeType& type, int most);

}  // namespace orrery
