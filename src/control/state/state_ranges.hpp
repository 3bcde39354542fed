// control/state/state_ranges.hpp - checks whether the numbers of a restored state are in range: ids
// that exist, devices that a node has, times that have passed, sums that are numbers.
//
// Called by restore() before anything is rebuilt: numbers in range can be looked up and counted
// safely; broken_invariant() (control/state/invariants.hpp) then checks whether they are
// consistent. Cost: O(jobs + devices + what they hold).
#pragma once

#include <optional>
#include <string>

#include "control/state/state.hpp"

namespace orrery {

/// Returns the first number that is out of range, in words, with the job or node it belongs to;
/// none: all are in range. Precondition: the tenants of the state are those it was written with.
[[nodiscard]] std::optional<std::string> out_of_range(const State& state);

}  // namespace orrery
