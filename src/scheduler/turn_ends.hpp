// scheduler/turn_ends.hpp - from when on a round may end the turn of a running job.
//
// Passes and what is promised before them (round_turns.hpp) ask the same question.
// Pure. Cost: least_turn() looks at the waiting jobs, turn_ends_from() at nothing else.
#pragma once

#include "scheduler/policy.hpp"
#include "scheduler/situation.hpp"

namespace orrery {

/// For how long a job keeps its turn at least as a round begins: Policy::min_run, but no time once
/// a gang has waited for two rounds.
[[nodiscard]] Duration least_turn(const Situation& situation, const Policy& policy);

/// The time from which the turn of a running job may end, if each lasts for `least`; max: its turn
/// does not end.
[[nodiscard]] Instant turn_ends_from(const RunningJob& job, const Situation& situation,
                                     Duration least);

}  // namespace orrery
