// executor/managers/foreign_work.hpp - what control is told of the work of others on the nodes of a
// resource manager.
//
// Pure functions of a manager's list and control's state. Nothing of others is ever ended: on
// nodes that are lent or the cluster's own their work is noted, and on shared ones jobs make room.
// A node is taken without a name (an empty `who`) while it is not known whether others use it: it
// takes no new jobs, and the jobs there go on.
// Cost: O(nodes of the manager x log + nodes of the work).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "control/state/state.hpp"
#include "executor/holds/hold.hpp"
#include "executor/holds/hold_table.hpp"

namespace orrery {

/// A list of the work of others.
struct ForeignList {
  std::span<const ForeignWork> work;
  Instant asked;  ///< for this list, by control's clock
};

/// Returns what control is told: ForeignUse for each node of the pool on which the work of others
/// has changed, and NodeFault for a node of the cluster's own on which such work was found.
[[nodiscard]] std::vector<InputKind> follow_foreign(const HoldPool& pool, const ForeignList& list,
                                                    const State& state);

/// Returns the inputs while the manager cannot be asked: shared nodes without known foreign work
/// are taken without a name, until the next list.
[[nodiscard]] std::vector<InputKind> follow_silence(const HoldPool& pool, const State& state);

/// The nodes of a pool that others are known to use.
struct ForeignNodes {
  std::uint32_t count = 0;
  Instant first_free = Instant::max();  ///< when the first of them is expected to be free
};
[[nodiscard]] ForeignNodes foreign_nodes(const HoldPool& pool, const State& state);

}  // namespace orrery
