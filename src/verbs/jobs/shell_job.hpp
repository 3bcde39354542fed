// verbs/jobs/shell_job.hpp - the job behind `orrery shell`: it holds devices for a shell that runs
// beside its first rank.
//
// Functions of one call of a verb. Errors are those of the controller, where nothing else is said.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "orrery/v1/orrery.pb.h"
#include "verbs/cluster/live_session.hpp"
#include "verbs/schedule/submit_request.hpp"

namespace orrery {

/// How long the job holds its devices.
enum class ShellHold : std::uint8_t {
  kWithShell,  ///< while the shell runs, or 5 min where none begins
  kForGood,    ///< until it is cancelled or its time is over
};

/// Returns the spec of the job; without a name it is "shell". Errors (kInput): those of the
/// options.
[[nodiscard]] Result<std::string> shell_job_spec(SubmitOptions options, ShellHold hold);

/// Returns the command that tells the job of its shell and becomes it: `own`, or the user's shell
/// where that is empty.
[[nodiscard]] std::vector<std::string> shell_command(const std::vector<std::string>& own);

/// Returns "orrery: job 7 (shell) asks for 2 accelerators".
[[nodiscard]] std::string shell_asked_text(const v1::SubmitJobResponse& job,
                                           std::uint32_t accelerators);
/// Returns what to do with a job that is kept.
[[nodiscard]] std::string shell_kept_text(std::uint64_t id);

/// Cancels the job, or finds that it has ended. Error (kInput): it may still hold its devices.
[[nodiscard]] Status cancel_shell_job(LiveSession& session, std::uint64_t id);

/// What await_running() needs of the program.
struct ShellWait {
  std::function<bool()> pause;                   ///< waits a moment; false: a signal ends the wait
  std::function<void(const std::string&)> said;  ///< a line for people
};
/// Waits until the job runs, and says what it waits for when that changes. False: `pause` ended the
/// wait. Error (kInfeasible): the job has ended.
[[nodiscard]] Result<bool> await_running(LiveSession& session, std::uint64_t id,
                                         const ShellWait& wait);

}  // namespace orrery
