// executor/managers/lent_service.hpp - whether lent nodes are in service, here and at their
// manager.
//
// A node that is drained there is drained here: its jobs end, and no more come. It is resumed once
// it is resumed there. A node that an operator drains here, at once or in a maintenance window, is
// left out of the holds that are asked for, and a hold of such nodes alone is given back.
// Stateless: each list of a manager is compared with control's state. Cost: O(nodes of the
// manager).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "control/state/state.hpp"
#include "executor/holds/hold.hpp"
#include "executor/holds/hold_table.hpp"

namespace orrery {

/// Whether a node is drained, or in a maintenance window that has begun.
[[nodiscard]] bool is_drained(const State& state, NodeId node, Instant now);

/// The drained nodes of a pool.
struct DrainedNodes {
  std::uint32_t count = 0;
  std::vector<std::string> avoid;  ///< names of those that the manager would lend
};
[[nodiscard]] DrainedNodes drained_nodes(const HoldPool& pool, const State& state, Instant now);

/// Returns the nodes of a pool that its manager keeps out of service, or does not have: "NODE
/// (REASON)". Precondition: `nodes` is of a complete list.
[[nodiscard]] std::vector<std::string> out_of_service(const HoldPool& pool,
                                                      std::span<const ManagerNode> nodes,
                                                      const State& state);

/// Returns what control is told of drains: DrainNode for lent nodes that are drained at their
/// manager, ResumeNode for nodes that were and no longer are. An operator's own drains and
/// maintenance windows stay, and so do quarantines. Precondition: `nodes` is of a complete list.
[[nodiscard]] std::vector<InputKind> follow_service(const HoldPool& pool,
                                                    std::span<const ManagerNode> nodes,
                                                    const State& state);

}  // namespace orrery
