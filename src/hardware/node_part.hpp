// hardware/node_part.hpp - a server with fewer accelerators than its type has, as a type of its
// own.
//
// A value that Catalog::with adds to the catalog; everything counted by node (power, price, memory,
// placement) is then correct for it.
#pragma once

#include <string>

#include "hardware/node_type.hpp"

namespace orrery {

/// Node `node` with `accelerators` of its n accelerators and the same fraction of all else: cores,
/// memory, drives, power, and NICs rounded up to whole ones. A scale-up domain stays inside it: all
/// of the node, or the largest that divides both it and the model's. Its id is
/// "<model's>-<accelerators>". Precondition: 1 <= accelerators < n.
[[nodiscard]] NodeType part_of_node(const NodeType& node, int accelerators);

/// The node with another number of NICs, each as fast as before. Precondition: node.compute_nics
/// and `nics` are at least 1.
[[nodiscard]] NodeType with_nics(NodeType node, int nics);

}  // namespace orrery
