// verbs/simulate/simulate_run.hpp - the verb `simulate`: plays every policy, and reports.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "verbs/simulate/simulate_request.hpp"
#include "verbs/verb_answer.hpp"

namespace orrery {

/// Called before a policy of that label is played with so many jobs; what it returns is called with
/// the virtual time now and then, and destroyed when the policy has been played. Either is empty
/// where nothing watches.
using PlayWatch = std::function<std::function<void(Instant, const Simulation&)>(
    const std::string& label, std::size_t jobs)>;

/// Plays the policies one after the other; writes the files of --out and --record. Errors: those of
/// the options and files; a series of prices that no node pays; of writing.
[[nodiscard]] Result<VerbAnswer> simulate(const CommandOptions& options,
                                          const SimulateOptions& asked, const PlayWatch& watch);

}  // namespace orrery
