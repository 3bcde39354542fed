// agent/launch_plan.hpp - derives launches from control's state: the nodes of a job's ranks, and
// the attempts that may run when a controller begins its term.
//
// Functions of the state alone, for the drivers of a FleetLink: the daemon and the twin.
#pragma once

#include <vector>

#include "agent/fleet_link.hpp"

namespace orrery {

class State;

/// Returns the lease of a job's ranks: binding if the job restarts after its lease. O(1).
[[nodiscard]] Lease lease_of(const State& state, JobId job);

/// Returns the plan of a job's present epoch. Precondition: it holds devices. O(its nodes).
[[nodiscard]] LaunchPlan launch_plan(const State& state, JobId job);

/// Returns all attempts that may have processes, ascending: those that hold devices and those that
/// left ghosts. O(devices in use).
[[nodiscard]] std::vector<KnownAttempt> known_attempts(const State& state);

/// Returns the link of a controller that begins its term with `state`: setup.boots is filled in,
/// and repairs that are under way are ordered again. Precondition: as for the constructor of
/// FleetLink.
[[nodiscard]] FleetLink link_of(const State& state, LinkSetup setup, Instant now);

}  // namespace orrery
