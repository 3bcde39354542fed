// fleet/rack_cooling.hpp - how many nodes a rack takes and which cooling class holds them, as
// chosen for generated specs.
#pragma once

#include "base/quantity.hpp"
#include "hardware/catalog.hpp"

namespace orrery {

/// Returns the rating of a node, else the top of its assumed range, else zero.
[[nodiscard]] Watts planned_power(const NodeType& type);

/// Whether a class suits racks of such nodes in an ordinary machine room: the air classes for
/// air-cooled nodes, direct liquid for the others.
[[nodiscard]] bool suits(const CoolingClass& cooling, const NodeType& type);

/// Returns the smallest suitable class that holds a load, the first of equal ones; nullptr: none
/// does.
[[nodiscard]] const CoolingClass* least_cooling(const Catalog& catalog, const NodeType& type,
                                                Watts load);

/// Returns the suitable class that holds the most, the first of equal ones; nullptr: none suits.
[[nodiscard]] const CoolingClass* densest_cooling(const Catalog& catalog, const NodeType& type);

/// Returns the number of nodes that the densest suitable class, and a scale-up domain that fills
/// its rack, allow; at least 1, at most `most`.
[[nodiscard]] int rack_nodes_max(const Catalog& catalog, const NodeType& type, int most);

}  // namespace orrery
