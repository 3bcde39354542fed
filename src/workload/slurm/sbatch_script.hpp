// workload/slurm/sbatch_script.hpp - a script made for Slurm's sbatch as a job: what its #SBATCH
// lines ask for, the script itself as its program.
//
// A function of the text and of the submission. docs/cluster.md has the table of what each option
// becomes. The job has `software.framework: slurm`: its command is the script's text and arguments,
// its environment has what of SLURM_* is known before it is placed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "workload/job_spec.hpp"
#include "workload/slurm/sbatch_options.hpp"

namespace orrery {

/// The submission of a script: its submitter's environment, directory and arguments.
struct SbatchSubmission {
  std::string file;                    ///< the script's name, for the job's and for errors
  std::string directory;               ///< absolute; where it was submitted
  std::vector<std::string> arguments;  ///< the script's $1 and on
  std::vector<std::pair<std::string, std::string>> environment;  ///< the submitter's
  UnknownSbatchOption unknown = UnknownSbatchOption::kError;
};

struct SbatchJob {
  JobSpec spec;  ///< read_job_spec() may yet find fault with it
  std::vector<std::string> notes;
};

/// Whether a text begins with #! and has an #SBATCH line.
[[nodiscard]] bool is_sbatch_script(std::string_view text);

/// Errors: those of read_sbatch_options(), values that are none, and sizes that contradict each
/// other, each with the place of an option; a script that does not begin with #! or is larger than
/// 1 MiB. O(bytes + numbers of the array).
[[nodiscard]] Result<SbatchJob> read_sbatch_script(std::string_view text,
                                                   const SbatchSubmission& submission);

}  // namespace orrery
