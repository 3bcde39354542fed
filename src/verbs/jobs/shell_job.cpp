#include "verbs/jobs/shell_job.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/text/count_text.hpp"
#include "base/text/terminal_text.hpp"
#include "verbs/cluster/live_text.hpp"

namespace orrery {
namespace {

/// The program of the job that holds the devices. On the node of the shell it ends when the shell
/// has ended or has not begun within five minutes; on other nodes it waits for the end of the job.
constexpr const char* kHoldsForShell = R"sh(trap 'exit 0' TERM
if [ "$ORRERY_RANK" != 0 ]; then while :; do sleep 3600 & wait $!; done; fi
shell=$ORRERY_SCRATCH/shell
left=150
until [ -s "$shell" ]; do
  left=$((left - 1))
  if [ $left -le 0 ]; then echo "no shell was started within 5 minutes"; exit 1; fi
  sleep 2 & wait $!
done
while kill -0 "$(cat "$shell")" 2>/dev/null; do sleep 2 & wait $!; done
)sh";
/// With --keep: until the job is cancelled or its time is over.
constexpr const char* kHoldsForGood =
    "trap 'exit 0' TERM\nwhile :; do sleep 3600 & wait $!; done\n";
/// Writes its process number for the script above and replaces itself with the shell.
constexpr const char* kBeginsShell =
    R"sh(echo $$ >"$ORRERY_SCRATCH/shell"; [ $# -gt 0 ] || set -- "${SHELL:-/bin/sh}"
exec "$@")sh";

}  // namespace

Result<std::string> shell_job_spec(SubmitOptions options, ShellHold hold) {
  if (options.name.empty()) options.name = "shell";
  options.launch.per = "node";
  options.terms.restarts = 0;
  const char* script = hold == ShellHold::kForGood ? kHoldsForGood : kHoldsForShell;
  return command_job_spec(options, {"/bin/sh", "-c", script});
}

std::vector<std::string> shell_command(const std::vector<std::string>& own) {
  std::vector<std::string> command{"/bin/sh", "-c", kBeginsShell, "sh"};
  command.insert(command.end(), own.begin(), own.end());
  return command;
}

std::string shell_asked_text(const v1::SubmitJobResponse& job, std::uint32_t accelerators) {
  return terminal_text(fmt::format("orrery: job {} ({}) asks for {}\n", job.id(), job.name(),
                                   counted(accelerators, "accelerator")),
                       Newlines::kKept);
}

std::string shell_kept_text(std::uint64_t id) {
  return fmt::format(
      "orrery: job {0} continues; `orrery exec {0}` opens another shell, `orrery cancel {0}` "
      "cancels the job\n",
      id);
}

Status cancel_shell_job(LiveSession& session, std::uint64_t id) {
  v1::CancelJobRequest request;
  request.set_request_id(session.request_id());
  request.set_id(id);
  const auto cancelled = session.client().call<v1::CancelJobResponse>("CancelJob", request);
  // One that has ended by itself meanwhile is what is wanted.
  if (cancelled || cancelled.error().kind == ErrorKind::kInfeasible) return {};
  return input_error({}, fmt::format("job {} could not be cancelled and may still hold its devices "
                                     "(`orrery cancel {}`): {}",
                                     id, id, cancelled.error().message));
}

Result<bool> await_running(LiveSession& session, std::uint64_t id, const ShellWait& wait) {
  std::string said;
  v1::GetJobRequest request;
  request.set_id(id);
  while (true) {
    const auto job = session.client().call<v1::Job>("GetJob", request);
    if (!job) return tl::unexpected(job.error());
    if (job->phase() == "running") return true;
    if (job->has_ended()) {
      return infeasible(fmt::format("job {} ({}) {}", id, job->name(), outcome(*job)));
    }
    if (!job->waiting().empty() && job->waiting() != said) {
      said = job->waiting();
      wait.said(fmt::format("orrery: job {} {} (^C cancels it)\n", id, said));
    }
    if (!wait.pause()) return false;
  }
}

}  // namespace orrery
