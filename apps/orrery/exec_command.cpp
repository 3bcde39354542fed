// orrery exec, shell
#include <poll.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "apps/orrery/command.hpp"
#include "apps/orrery/output.hpp"
#include "apps/orrery/remote_command.hpp"
#include "apps/orrery/submit_options.hpp"
#include "verbs/jobs/shell_job.hpp"
#include "verbs/jobs/submitted_job.hpp"
#include "verbs/schedule/submit_request.hpp"

namespace orrery {
namespace {

using Terminal = RemoteCommand::Terminal;

struct ExecOptions {
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

Status exec_in_rank(CommandOptions& options, const ExecOptions& asked) {
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

struct ShellOptions {
  SubmitOptions job;
  bool keep = false;
};

using Words = std::vector<std::string>;

/// Signals that come while a shell is waited for or runs, and whether it came to run.
struct ShellRun {
  NotedSignals signals;
  bool has_run = false;
};

/// Looks for a signal for a moment. False: one asks the program to end.
bool pause_for_signal(NotedSignals& signals) {
  constexpr int kLookMs = 200;
  pollfd poll{signals.descriptor(), POLLIN, 0};
  (void)::poll(&poll, 1, kLookMs);
  signals.clear();
  return NotedSignals::ending() == 0;
}

/// Waits for the job and runs the shell beside it. Returns its exit status; for an ending signal
/// 128 and its number.
Result<int> run_shell(const CommandOptions& options, LiveSession& session, std::uint64_t id,
                      ShellRun& run) {
  if (NotedSignals::ending() != 0) return 128 + NotedSignals::ending();
  const ShellWait wait{.pause = [&] { return pause_for_signal(run.signals); },
                       .said = print_message};
  const Result<bool> running = await_running(session, id, wait);
  if (!running) return tl::unexpected(running.error());
  if (!*running) return 128 + NotedSignals::ending();
  run.has_run = true;
  RemoteCommand remote{.job = id, .command = shell_command(options.command.value_or(Words()))};
  remote.terminal_type = options.terminal_type;
  if (at_terminal()) remote.terminal = Terminal::kYes;
  return run_remote(session, remote, run.signals);
}

Status shell(CommandOptions& options, const ShellOptions& asked) {
  if (Status shown = check_output(options); !shown) return shown;
  Result<std::unique_ptr<LiveSession>> session = LiveSession::open(options);
  if (!session) return forward_error(session);
  ShellRun run;
  Result<std::string> spec =
      shell_job_spec(asked.job, asked.keep ? ShellHold::kForGood : ShellHold::kWithShell);
  if (!spec) return forward_error(spec);
  const Result<v1::SubmitJobResponse> job =
      submit_job(**session, {*std::move(spec), "command line", ""});
  if (!job) return tl::unexpected(job.error());
  print_message(shell_asked_text(*job, asked.job.resources.accelerators));
  const Result<int> status = run_shell(options, **session, job->id(), run);
  if (asked.keep && run.has_run) {
    print_message(shell_kept_text(job->id()));
  } else if (Status cancelled = cancel_shell_job(**session, job->id()); !cancelled) {
    return cancelled;
  }
  if (!status) return tl::unexpected(status.error());
  options.exit_status = *status;
  return {};
}

void add_exec_verb(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto asked = std::make_shared<ExecOptions>();
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
  auto asked = std::make_shared<ShellOptions>();
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
