// verbs/record/replay.hpp - the verb `replay`: whether the inputs of a record lead to its events
// again.
#pragma once

#include <string>

#include "verbs/command_options.hpp"
#include "verbs/verb_answer.hpp"

namespace orrery {

/// `directory`: what --record wrote, of a simulation for one policy or of a controller for one
/// start. Errors: those of the files; the first difference (kInfeasible).
[[nodiscard]] Result<VerbAnswer> replay(const CommandOptions& options,
                                        const std::string& directory);

}  // namespace orrery
