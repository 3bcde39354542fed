// orrery exec, shell
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "apps/orrery/command.hpp"
#include "apps/orrery/output.hpp"
#include "apps/orrery/remote_command.hpp"
#include "apps/orrery/submit_options.hpp"
#include "base/text/count_text.hpp"
#include "verbs/cluster/live_text.hpp"
#include "verbs/schedule/submit_request.hpp"

namespace orrery {
namespace {

using Terminal = RemoteCommand::Terminal;

struct ExecAsked {
  std::string id;
  std::optional<std::uint32_t> gang;
  std::optional<std::uint32_t> rank;
  bool terminal = false;
};

bool at_terminal() { return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1; }

Status check_output(const CommandOptions& options) {
  if (options.output == OutputFormat::kText) return {};
  return input_error({}, "-o json: the command itself writes the output, expected no -o");
}

Status exec_in_rank(CommandOptions& options, const ExecAsked& asked) {
  if (Status shown = check_output(options); !shown) return shown;
  const Result<std::uint64_t> id = job_id(asked.id);
  if (!id) return tl::unexpected(id.error());
  RemoteCommand remote{.job = *id, .gang = asked.gang, .rank = asked.rank};
  remote.terminal_type = options.terminal_type;
  if (options.command) {
    if (options.command->empty()) return input_error({}, "nothing after --: expected a command");
    remote.command = *options.command;
  }
  const bool shell = remote.command.empty();
  if (asked.terminal || (shell && at_terminal())) remote.terminal = Terminal::kYes;
  Result<std::unique_ptr<LiveSession>> session = LiveSession::open(options);
  if (!session) return forward_error(session);
  NotedSignals signals;
  const Result<int> status = run_remote(**session, remote, signals);
  if (!status) return tl::unexpected(status.error());
  options.exit_status = *status;
  return {};
}

// --- shell --------------------------------------------------------------------------------------

struct ShellAsked {
  SubmitOptions job;
  bool keep = false;
};

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

Result<std::uint64_t> submit_holder(LiveSession& session, ShellAsked& asked) {
  if (asked.job.name.empty()) asked.job.name = "shell";
  asked.job.per = "node";
  asked.job.restarts = 0;
  const char* script = asked.keep ? kHoldsForGood : kHoldsForShell;
  Result<std::string> text = command_job_spec(asked.job, {"/bin/sh", "-c", script});
  if (!text) return forward_error(text);
  v1::SubmitJobRequest request;
  request.set_request_id(session.request_id());
  request.set_spec(*std::move(text));
  request.set_file("command line");
  const auto job = session.client().call<v1::SubmitJobResponse>("SubmitJob", request);
  if (!job) return tl::unexpected(job.error());
  print_message(fmt::format("orrery: job {} ({}) asks for {}\n", job->id(), job->name(),
                            counted(asked.job.accelerators, "accelerator")));
  return job->id();
}

Status cancel_holder(LiveSession& session, std::uint64_t id) {
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

/// Waits until the job runs, and says what it waits for when that changes. False: a signal came.
Result<bool> await_running(LiveSession& session, std::uint64_t id, const NotedSignals& signals) {
  constexpr int kLookMs = 200;
  std::string said;
  v1::GetJobRequest request;
  request.set_id(id);
  while (signals.ending() == 0) {
    const auto job = session.client().call<v1::Job>("GetJob", request);
    if (!job) return tl::unexpected(job.error());
    if (job->phase() == "running") return true;
    if (job->has_ended()) {
      return infeasible(fmt::format("job {} ({}) {}", id, job->name(), outcome(*job)));
    }
    if (!job->waiting().empty() && job->waiting() != said) {
      said = job->waiting();
      print_message(fmt::format("orrery: job {} {} (^C cancels it)\n", id, said));
    }
    pollfd poll{signals.descriptor(), POLLIN, 0};
    (void)::poll(&poll, 1, kLookMs);
  }
  return false;
}

Status shell(CommandOptions& options, ShellAsked& asked) {
  if (Status shown = check_output(options); !shown) return shown;
  Result<std::unique_ptr<LiveSession>> session = LiveSession::open(options);
  if (!session) return forward_error(session);
  NotedSignals signals;
  const Result<std::uint64_t> id = submit_holder(**session, asked);
  if (!id) return tl::unexpected(id.error());
  RemoteCommand remote{.job = *id, .command = {"/bin/sh", "-c", kBeginsShell, "sh"}};
  remote.terminal_type = options.terminal_type;
  if (options.command) {
    remote.command.insert(remote.command.end(), options.command->begin(), options.command->end());
  }
  if (at_terminal()) remote.terminal = Terminal::kYes;
  const Result<bool> running = await_running(**session, *id, signals);
  Result<int> status = 128 + signals.ending();
  if (!running) {
    status = tl::unexpected(running.error());
  } else if (*running) {
    status = run_remote(**session, remote, signals);
  }
  if (asked.keep && running && *running) {
    print_message(
        fmt::format("orrery: job {0} continues; `orrery exec {0}` opens another shell, `orrery "
                    "cancel {0}` cancels the job\n",
                    *id));
  } else if (Status cancelled = cancel_holder(**session, *id); !cancelled) {
    return cancelled;
  }
  if (!status) return tl::unexpected(status.error());
  options.exit_status = *status;
  return {};
}

void add_exec_verb(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto asked = std::make_shared<ExecAsked>();
  CLI::App& verb = *app.add_subcommand(
      "exec", "run a command (after --), or a shell, next to a rank of a running job");
  verb.add_option("id", asked->id, "number of the job")->type_name("JOB")->required();
  verb.add_option("--rank", asked->rank, "number of the rank (default: 0)")->type_name("R");
  verb.add_option("--gang", asked->gang,
                  "number of the gang in a job with several gangs (default: 0)")
      ->type_name("G");
  verb.add_flag("-t,--tty", asked->terminal, "allocate a terminal for the command");
  verb.footer(
      "The command runs on the rank's node as the job's POSIX user, with the rank's\n"
      "environment, directory, devices and limits, and is stopped when the job ends. `orrery "
      "exec`\n"
      "returns the exit status of the command. Only the submitter of the job, admins, and\n"
      "operators with the run_as of the job may run commands.\n"
      "Examples:\n"
      "  orrery exec 7                             (a shell)\n"
      "  orrery exec 7 --rank 3 -- nvidia-smi\n"
      "  orrery exec 7 -t -- top\n"
      "  orrery exec 7 -- tar c out | tar x");
  verb.callback([&options, &chosen, asked] {
    chosen = [&options, asked] { return exec_in_rank(options, *asked); };
  });
}

void add_shell_verb(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto asked = std::make_shared<ShellAsked>();
  CLI::App& verb = *app.add_subcommand(
      "shell", "allocate accelerators and open a shell, or run a command, on their node");
  add_allocation_options(verb, asked->job);
  verb.add_flag("--keep", asked->keep, "keep the job running when the shell ends");
  verb.footer(
      "`orrery shell` submits a job that only holds its devices, waits until the job runs, and\n"
      "opens a shell as the user of the job on the node of rank 0. The job ends with the shell,\n"
      "also when this program or its machine fails.\n"
      "Examples:\n"
      "  orrery shell -n 2 --time-limit '2 h'\n"
      "  orrery shell --type h100 --cpus 8 --memory '64 GiB' -- python3");
  verb.callback([&options, &chosen, asked] {
    chosen = [&options, asked] { return shell(options, *asked); };
  });
}

}  // namespace

void add_exec_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  add_exec_verb(app, options, chosen);
  add_shell_verb(app, options, chosen);
}

}  // namespace orrery
