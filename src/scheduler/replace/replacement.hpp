// scheduler/replace/replacement.hpp - how a job continues after it lost nodes.
//
// 1. A node replaces a lost one if it is of the same node group, has the same devices and the host
//    resources free, and keeps the placement rules of the gang. Spares come before free nodes, near
//    nodes before distant ones.
// 2. A replacement is never a node that is reserved, or that closes before the job is expected to
//    end. The nodes that a job keeps are not compared with reservations.
// 3. Each function answers a question and changes nothing: control checks the decision on a fleet
//    in which the chosen spares are ready (make_ready()) before it writes an event.
//
// Pure. Cost: O(lost nodes x (spares + 1,024) x (nodes of the gangs, of reservations and of
// closures)); most nodes are rejected in O(1).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "scheduler/decision.hpp"
#include "scheduler/policy.hpp"

namespace orrery {

/// What a replacement is chosen from.
struct ReplacementContext {
  const Situation& situation;
  const Policy& policy;
  /// Nodes kept for replacements: drained in `situation`, and ready but for that.
  std::span<const NodeId> spares;
};

struct SpareTaken {
  NodeId lost;
  NodeId spare;  ///< the node that replaces it
};

/// A decision in which nodes replace others.
template <class Decision>
struct WithReplacements {
  Decision decision;
  std::vector<SpareTaken> spares;  ///< replacements that are spares
  std::size_t replaced = 0;        ///< number of all replacements
};

/// Makes spares ready in an overlay, as they are after SpareSet.
void make_ready(FleetOverlay& fleet, std::span<const SpareTaken> spares);

/// Returns the resize of an elastic job of one gang that replaces its lost node; none if no node
/// can replace it or no terms can be computed.
[[nodiscard]] std::optional<WithReplacements<ResizeJob>> resize_with_replacement(
    const ReplacementContext& context, const RunningJob& job, NodeId lost);

/// Returns the resize of an elastic job of one gang to the largest of its sizes that fits on its
/// nodes without the lost one; none if no size fits.
[[nodiscard]] std::optional<ResizeJob> resize_without(const ReplacementContext& context,
                                                      const RunningJob& job, NodeId lost);

/// Returns the start of a waiting job on the gangs it had, with replacements for nodes that are not
/// ready or not free; none if a node has no replacement, closes before the end, or no terms can be
/// computed.
[[nodiscard]] std::optional<WithReplacements<StartJob>> restart_in_place(
    const ReplacementContext& context, const WaitingJob& job, std::span<const PlacedGang> gangs);

}  // namespace orrery
