// control/invariants.hpp - what must be so of control's state, whatever happened: asked by tests
// and by the twin after events, and of a state that is restored; never by what decides.
//
// Everything is counted anew from jobs, ghosts and nodes and compared with what State keeps.
// Cost: O(jobs + nodes x devices), so for small fleets after every event, else now and then.
#pragma once

#include <optional>
#include <string>

#include "control/state.hpp"

namespace orrery {

/// The first that does not hold, in words; none: all do. Of jobs: each is in the one place its
/// phase says, waits for as many as have not finished, runs gangs that are whole until it stops.
/// Of devices: each is held by one job, or in shares that add up; free are all others; each counts
/// once in the ledger, as what its job and node say; the ledger's times add up to devices x time.
/// Of tenants, power and slots: what is kept is what is held.
[[nodiscard]] std::optional<std::string> broken_invariant(const State& state);

/// Where no device was ever shared: what jobs were metered for of each type is, to the
/// device-nanosecond, what the ledger counts as in use. Shared devices are in use once, but metered
/// for each that has some.
[[nodiscard]] std::optional<std::string> broken_metering(const State& state);

}  // namespace orrery
