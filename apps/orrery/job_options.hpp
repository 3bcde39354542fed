// apps/orrery/job_options.hpp - what verbs that act on jobs share: which jobs, and their end.
#pragma once

#include <cstdint>
#include <vector>

#include "apps/orrery/command.hpp"
#include "verbs/jobs/job_selection.hpp"

namespace orrery {

/// Adds the argument JOB.. and the options --name, --tenant, --user and --state.
void add_job_selection(CLI::App& verb, JobSelection& selection);

/// Waits until all jobs have ended and prints their outcomes in the given order. kInfeasible when
/// one did not finish: exit 1.
[[nodiscard]] Status print_ends(const CommandOptions& options, LiveSession& session,
                                const std::vector<std::uint64_t>& ids);

}  // namespace orrery
