// control/state_ranges.hpp - whether the numbers of a state that was read can be meant: ids that
// are there, devices that a node has, times that have passed, sums that are numbers.
//
// Asked by restore() before anything is made from them: what lies in range can be looked up and
// counted without harm, and whether it fits together is then for broken_invariant() to say
// (control/invariants.hpp). Cost: O(jobs + devices + what they hold).
#pragma once

#include <optional>
#include <string>

#include "control/state.hpp"

namespace orrery {

/// The first number that cannot be meant, in words, with the job or node it belongs to; none: all
/// can. Precondition: the tenants of the state are those it was written with.
[[nodiscard]] std::optional<std::string> out_of_range(const State& state);

}  // namespace orrery
