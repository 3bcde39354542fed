// apps/orrery/submit_request.hpp - the job that `orrery submit -- CMD...` or a script made for
// Slurm means, as the text of a spec.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "workload/job_spec.hpp"

namespace orrery {

/// The options, as typed.
struct SubmitOptions {
  std::string file;  ///< of a spec; empty: the job is made of the rest
  std::string name;  ///< empty: of the program
  std::uint32_t accelerators = 1;
  std::vector<std::string> types;  ///< empty: any
  std::string tenant = "default";
  std::int32_t priority = 0;
  std::string time_limit;
  std::string by;     ///< its deadline
  std::string under;  ///< its budget
  std::string framework;
  std::vector<std::string> environment;  ///< NAME=VALUE
  std::string per = "accelerator";
  std::string directory;       ///< empty: the current one
  std::optional<double> cpus;  ///< cores for each accelerator
  std::string memory;          ///< memory for each accelerator; empty: not given
  std::string output;          ///< files for what it writes, as of LaunchSpec
  std::string error;
  std::optional<std::uint32_t> restarts;
  std::vector<std::string> after;
  bool hold = false;
  bool wait = false;
  bool dry_run = false;
  std::string calibration;             ///< to plan a training by; empty: as the job says
  bool lenient = false;                ///< with what is not known of a script
  std::vector<std::string> arguments;  ///< of a script
};

/// Takes `by` and `under` as a job's deadline and budget, where they are not empty. Errors name the
/// option.
[[nodiscard]] Status take_bounds(const std::string& by, const std::string& under, JobSpec& spec);

/// A Batch job of one role. Errors (kInput) name the option; what else is wrong with the job is
/// said as of a file.
[[nodiscard]] Result<std::string> command_job_spec(const SubmitOptions& options,
                                                   const std::vector<std::string>& command);

/// The text of a spec's file, as it is where no option says anything else, or with what the options
/// say. Errors: those of the file, with its lines, and of the options.
[[nodiscard]] Result<std::string> overruled_job_spec(const SubmitOptions& options,
                                                     std::string text);

/// Whether a file is a script for sbatch rather than a spec: by its text, or by its name where that
/// ends in .sbatch or .sh.
[[nodiscard]] bool is_script(const std::string& file, std::string_view text);

struct ScriptSpec {
  std::string text;
  std::vector<std::string> notes;  ///< what of the script has no effect
};

/// What the options say wins over the script's lines. Errors: those of read_sbatch_script(), of the
/// options, and what else is wrong with the job.
[[nodiscard]] Result<ScriptSpec> script_job_spec(const SubmitOptions& options,
                                                 std::string_view script);

}  // namespace orrery
