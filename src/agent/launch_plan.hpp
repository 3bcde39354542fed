// agent/launch_plan.hpp - what control's state says of launching: where the ranks of a job go, and
// what may run anywhere when a controller begins its term.
//
// Functions of the state alone, for whoever drives a FleetLink: the daemon and the twin.
#pragma once

#include <vector>

#include "agent/fleet_link.hpp"

namespace orrery {

class State;

/// Of the present epoch of a job. Precondition: it holds devices. O(its nodes).
[[nodiscard]] LaunchPlan launch_plan(const State& state, JobId job);

/// All attempts of which something may run, ascending: those that hold devices and those that left
/// ghosts. O(devices in use).
[[nodiscard]] std::vector<KnownAttempt> known_attempts(const State& state);

}  // namespace orrery
