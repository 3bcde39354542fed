// control/snapshot.hpp - the whole of control's state as bytes, and back: where a log begins that
// does not begin with the first job, and a number that says whether two states are one.
//
// The same form as records (control/encoder.hpp): the fields in order, after a head with a number
// for the form, the size of the fleet, and a checksum. What follows from the rest is not written
// but made again: free counts, the queue, planned power, who holds what. Of a plan the key stands
// here, its entry is asked for again.
// Cost: O(jobs + nodes + links), about a megabyte for 10,000 jobs that have not ended.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "control/state.hpp"

namespace orrery {

/// The same bytes for the same events, on every machine.
[[nodiscard]] std::string snapshot_of(const State& state);

/// Precondition: no event was applied to `state`, and its setup is that of the snapshot (its sizes
/// are compared, and plans are asked of its source). Then later events do to it what they would
/// have done to the state of the snapshot. Errors (kEnvironment): bytes that snapshot_of did not
/// write or that are damaged, another form, another fleet, numbers that cannot be meant or do not
/// fit together (control/state_ranges.hpp, control/invariants.hpp); `state` is of no use then.
[[nodiscard]] Status restore(State& state, std::string_view bytes);

/// Checksum of what a snapshot holds.
[[nodiscard]] std::uint64_t digest_of(const State& state);

}  // namespace orrery
