// executor/holds/hold_use.hpp - what a hold is good for: how many of its nodes can take jobs, and
// whether its agents have joined.
//
// Pure functions of a hold and control's state. Cost: O(nodes of the hold).
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "control/state/state.hpp"
#include "executor/holds/hold_table.hpp"

namespace orrery {

/// What holds are looked at with.
struct HoldView {
  const State& state;
  Instant now;
  const HoldTiming& timing;
  Duration longest;                         ///< length of the longest job that waits for nodes
  std::span<const FleetTypeId> types = {};  ///< that such jobs can use; empty: all
};

/// Nodes of holds.
struct HoldUse {
  std::uint32_t held = 0;     ///< lent, or asked for
  std::uint32_t drained = 0;  ///< of these
  std::uint32_t fit = 0;   ///< of those that are not drained: of a type that waiting jobs can use
  std::uint32_t able = 0;  ///< of these: they take jobs
  /// Able nodes where jobs run, where one job is to run alone, or where waiting jobs could run.
  std::uint32_t useful = 0;
  std::uint32_t busy = 0;  ///< of the useful ones: ranks may be there
  bool used = false;       ///< ranks may be on some node

  HoldUse& operator+=(const HoldUse& other);
};

/// Whether ranks may be on the node. O(jobs on it + ghosts).
[[nodiscard]] bool has_ranks(const State& state, NodeId node);
/// Whether an agent of the hold has joined and is not silent. The silence of a node in repair is
/// not noticed, so that it says nothing.
[[nodiscard]] bool speaks(const State& state, const Hold& hold);
/// Whether no agent of the hold has joined since its nodes were lent.
[[nodiscard]] bool is_mute(const State& state, const Hold& hold);

/// Whether a type is one of those that jobs can use; `types` empty: they can use all.
[[nodiscard]] bool is_useful(FleetTypeId type, std::span<const FleetTypeId> types);
/// Returns how many nodes the holds of a manager have or are asked for. O(holds).
[[nodiscard]] std::uint32_t held_nodes(std::span<const Hold> holds, std::uint32_t manager);
/// Whether the hold has nodes of types that waiting jobs can use, or may get some.
[[nodiscard]] bool may_fit(const Hold& hold, std::span<const FleetTypeId> types);
/// Returns how many of its nodes have joined and no ranks, so that a waiting job could start there.
[[nodiscard]] std::uint32_t free_nodes(const Hold& hold, const HoldView& view);

/// Counts the nodes of a hold by what they are good for.
[[nodiscard]] HoldUse use_of(const Hold& hold, const HoldView& view);

}  // namespace orrery
