// control/state/invariants.hpp - the invariants of control's state. Tests and the twin check them
// after events, and restore checks a restored state; code that decides never does.
//
// Everything is counted again from jobs, ghosts and nodes and compared with what State keeps. Cost:
// O(jobs + nodes x devices), so after every event only for small fleets, else now and then.
#pragma once

#include <optional>
#include <string>

#include "control/state/state.hpp"

namespace orrery {

/// Returns the first invariant that does not hold, in words; none: all hold. Jobs: each is only in
/// the list of its phase, waits for as many jobs as have not finished, and has whole gangs until it
/// stops. Devices: each is held by one job, or in shares that add up; all others are free; each
/// counts once in the ledger, under the cause that its job and node imply; the ledger's times add
/// up to devices x time. Tenants, power and slots: the sums kept equal what is held.
[[nodiscard]] std::optional<std::string> broken_invariant(const State& state);

/// For fleets without shared devices: the metered time of jobs equals, for each type and to the
/// device-nanosecond, the time that the ledger counts as in use. A shared device is in use once,
/// but metered for each job that has a share.
[[nodiscard]] std::optional<std::string> broken_metering(const State& state);

}  // namespace orrery
