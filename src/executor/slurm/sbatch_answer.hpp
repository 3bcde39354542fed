// executor/slurm/sbatch_answer.hpp - what sbatch says of a job that it was given.
//
// Pure functions of a text; any bytes may come. The texts are those of slurm_strerror() of Slurm
// 22.05 to 26.05. Cost O(bytes).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "executor/holds/hold.hpp"

namespace orrery {

/// Whether a text is the id of a job, not of an element of an array.
[[nodiscard]] bool is_slurm_job_id(std::string_view text);

/// Reads what `sbatch --parsable` printed: the job's id. Error: something else was printed.
[[nodiscard]] Result<std::string> read_sbatch(std::string_view text);

/// Why sbatch failed.
struct SbatchFailure {
  std::optional<HoldRefusal> refused;  ///< none: the job may exist all the same
  std::string text;                    ///< Slurm's words, on one line
};

/// Reads what sbatch wrote to its standard error before it exited with a failure. Words that are
/// not known are kBusy; no words leave open what happened.
[[nodiscard]] SbatchFailure read_sbatch_errors(std::string_view text);

}  // namespace orrery
