// control/state/snapshot.hpp - the whole of control's state as bytes, and back: the begin of a log
// that does not begin with the first job, and a number to compare two states.
//
// The form is that of records (control/codec/encoder.hpp): the fields in order, after a head with a
// number for the form and the size of the fleet, then a checksum. What can be derived is not
// written but rebuilt: free counts, the queue, planned power, owners of devices. Plans are kept as
// keys; their entries are requested again.
// Cost: O(jobs + nodes + links), about a megabyte for 10,000 jobs that have not ended.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "control/state/state.hpp"

namespace orrery {

/// Returns the snapshot; the same events give the same bytes on every machine.
[[nodiscard]] std::string snapshot_of(const State& state);

/// Precondition: no event was applied to `state`, and its setup is that of the snapshot (its sizes
/// are compared, and plans are requested from its source). Then later events change it as they
/// would have changed the state of the snapshot. Errors (kEnvironment): bytes that snapshot_of did
/// not write or that are damaged, another form, another fleet, numbers that are out of range or
/// inconsistent (control/state/state_ranges.hpp, control/state/invariants.hpp); `state` is unusable
/// then.
[[nodiscard]] Status restore(State& state, std::string_view bytes);

/// Returns the checksum of a snapshot's content.
[[nodiscard]] std::uint64_t digest_of(const State& state);

/// Returns a state whose fleet has changed to that of `next`, with everything else as it was. Jobs
/// keep their devices; added nodes begin as ControlSetup::nodes_begin says. Errors: those of
/// fleet_map(); a node that is gone has jobs, or its order has changed. O(size of the state).
[[nodiscard]] Result<State> with_fleet(const State& state, const ControlSetup& next);

/// Checks a change of the fleet that is asked for. Errors: those of with_fleet; a running job's
/// plan that the new facts change, because the job runs on by its own. O(size of the state), and a
/// search for each plan.
[[nodiscard]] Status check_change(const State& state, const ControlSetup& next);

/// Checks an event of a log before it is applied. Error: its fleet cannot be built any more,
/// because the catalog or the program is another one. O(1) for other events.
[[nodiscard]] Status check_replay(const State& state, const Event& event);

}  // namespace orrery
