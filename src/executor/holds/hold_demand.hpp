// executor/holds/hold_demand.hpp - how many nodes of a resource manager the waiting jobs need.
#pragma once

#include <cstdint>
#include <vector>

#include "control/core/core.hpp"

namespace orrery {

/// The nodes that a manager may lend.
struct HoldNodes {
  std::vector<NodeId> nodes;  ///< ascending
  std::uint32_t most = 0;     ///< nodes that it lends at once
  Duration time;              ///< for which it lends a node
};

struct NodesNeeded {
  std::uint32_t nodes = 0;
  Duration longest;  ///< of the jobs among them whose length is known
};

/// Returns how many whole nodes the waiting jobs need that could start on such nodes if they were
/// lent: those that the last pass found no devices for, in the order in which they wait, up to
/// `most`. A job that needs more than `most` nodes, or would not be done within `usable` as far as
/// its length is known, counts for none. O(waiting jobs x options).
[[nodiscard]] NodesNeeded nodes_needed(const Core& core, const HoldNodes& lent, Duration usable);

}  // namespace orrery
