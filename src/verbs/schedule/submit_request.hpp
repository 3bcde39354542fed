// verbs/schedule/submit_request.hpp - the job of `orrery submit -- CMD...` or of a script made for
// Slurm, as the text of a spec.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "workload/job_spec.hpp"

namespace orrery {

/// The file that describes a job, and how it is read.
struct SubmittedFile {
  std::string name;                    ///< of a spec or a script; empty: options describe the job
  std::vector<std::string> arguments;  ///< arguments of a script
  bool lenient = false;                ///< whether unknown lines of a script are accepted
  std::string calibration;             ///< to plan a training by; empty: as the job says
};

/// What each job asks for.
struct SubmittedResources {
  std::uint32_t accelerators = 1;
  std::vector<std::string> types;  ///< empty: any
  std::optional<double> cpus;      ///< cores for each accelerator
  std::string memory;              ///< memory for each accelerator; empty: not given
};

/// How its ranks are started.
struct SubmittedLaunch {
  std::string framework;
  std::string per = "accelerator";
  std::vector<std::string> environment;  ///< NAME=VALUE
  std::string directory;                 ///< empty: the current one
  std::string output;                    ///< files for its output, as in LaunchSpec
  std::string error;
};

/// When it runs, and how often.
struct SubmittedTerms {
  std::int32_t priority = 0;
  std::string time_limit;
  std::string by;     ///< its deadline
  std::string under;  ///< its budget
  std::optional<std::uint32_t> restarts;
  std::vector<std::string> after;
  bool hold = false;
};

/// The options, as typed.
struct SubmitOptions {
  std::string name;  ///< empty: that of the program
  std::string tenant = "default";
  SubmittedFile file;
  SubmittedResources resources;
  SubmittedLaunch launch;
  SubmittedTerms terms;
  bool wait = false;
  bool dry_run = false;
  bool update = false;  ///< whether a running service gets what the spec says
};

/// Returns the last part of a path, with '-' for each character that a job's name cannot have;
/// "job" where nothing is left.
[[nodiscard]] std::string job_name_of(const std::string& path);

/// Returns the text of a spec after reading it back. Errors (kInput) have no line, because the user
/// has not seen this text.
[[nodiscard]] Result<std::string> checked_job_text(const JobSpec& spec);

/// Takes `by` and `under` as a job's deadline and budget, where they are not empty. Errors name the
/// option.
[[nodiscard]] Status take_bounds(const std::string& by, const std::string& under, JobSpec& spec);

/// Returns a Batch job of one role. Errors (kInput) name the option; other errors of the job are
/// reported as of a file.
[[nodiscard]] Result<std::string> command_job_spec(const SubmitOptions& options,
                                                   const std::vector<std::string>& command);

/// Returns the text of a spec's file, unchanged where no option overrides it, or with the options'
/// values. Errors: those of the file, with its lines, and of the options.
[[nodiscard]] Result<std::string> overruled_job_spec(const SubmitOptions& options,
                                                     std::string text);

/// Whether a file is a script for sbatch rather than a spec: by its text, or by its name where that
/// ends in .sbatch or .sh.
[[nodiscard]] bool is_script(const std::string& file, std::string_view text);

struct ScriptSpec {
  std::string text;
  std::vector<std::string> notes;  ///< lines of the script that have no effect
};

/// Makes a spec of a script; options override the script's lines. Errors: those of
/// read_sbatch_script(), of the options, and of the job.
[[nodiscard]] Result<ScriptSpec> script_job_spec(const SubmitOptions& options,
                                                 std::string_view script);

}  // namespace orrery
