// scheduler/pass/closures.hpp - which placements meet nodes that close before a job would be done.
//
// Nodes on which a running job already has a rank do not count for it: it is there until it stops.
#pragma once

#include <span>

#include "scheduler/situation.hpp"

namespace orrery {

/// Hides the devices of nodes that close before `end` and on which the job has no rank.
void hide_closed(FleetOverlay& fleet, const Situation& situation, const RunningJob& job,
                 Instant end);
/// Hides the devices of all nodes that close before `end`.
void hide_closed(FleetOverlay& fleet, const Situation& situation, Instant end);

/// Whether the placement `there` takes a running job to a node that closes before `end`.
[[nodiscard]] bool moves_to_closed(const PlacedGang& there, const Situation& situation,
                                   const RunningJob& job, Instant end);
/// Whether a node of the gangs closes before `end`.
[[nodiscard]] bool is_closed(std::span<const PlacedGang> gangs, const Situation& situation,
                             Instant end);

}  // namespace orrery
