// scheduler/rounds/turn_ends.hpp - the time from which a round may end the turn of a running job.
//
// Shared by passes and by what is promised before them (round_turns.hpp). Pure. Cost: least_turn()
// reads the waiting jobs, turn_ends_from() only its job.
#pragma once

#include "scheduler/policy.hpp"
#include "scheduler/situation.hpp"

namespace orrery {

/// The least time for which a job keeps its turn when a round begins: Policy::min_run, but zero
/// once a gang has waited for two rounds.
[[nodiscard]] Duration least_turn(const Situation& situation, const Policy& policy);

/// The time from which the turn of a running job may end, if each lasts for `least`; max: its turn
/// does not end.
[[nodiscard]] Instant turn_ends_from(const RunningJob& job, const Situation& situation,
                                     Duration least);

}  // namespace orrery
