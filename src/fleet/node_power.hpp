// fleet/node_power.hpp - the power that idle nodes of a group draw.
//
// A pure function; used by the builder, which compares limits with it, and for planned power.
#pragma once

#include <algorithm>

#include "fleet/topology.hpp"

namespace orrery {

/// The draw of one idle node: the published figure of its type, 0 W where there is none, at most
/// what the node draws in training.
[[nodiscard]] inline Watts idle_power(const NodeGroup& group, const NodeType& type) {
  const Watts idle = type.idle_power.value_or(Watts(0));
  return group.typical_power ? std::min(idle, *group.typical_power) : idle;
}

}  // namespace orrery
