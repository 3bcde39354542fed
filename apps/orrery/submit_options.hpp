// apps/orrery/submit_options.hpp - the options of verbs that submit a job made on the command line.
#pragma once

#include <CLI/CLI.hpp>

#include "verbs/schedule/submit_request.hpp"

namespace orrery {

/// Adds the options for a job's name, owner and resources. `asked` outlives the verb.
void add_allocation_options(CLI::App& verb, SubmitOptions& asked);

}  // namespace orrery
