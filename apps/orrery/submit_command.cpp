// orrery submit
#include <cstdio>
#include <memory>

#include "apps/orrery/command.hpp"
#include "apps/orrery/job_options.hpp"
#include "apps/orrery/output.hpp"
#include "apps/orrery/submit_options.hpp"
#include "verbs/jobs/submitted_job.hpp"
#include "verbs/schedule/submit_request.hpp"
#include "verbs/services/service_update.hpp"

namespace orrery {
namespace {

Status try_dry(const CommandOptions& options, const SubmittedSpec& spec) {
  print_bytes(spec.text);
  const Result<std::string> note = checked_without_submitting(options, spec);
  if (!note) return tl::unexpected(note.error());
  print_message(*note);
  return {};
}

/// Gives a running service what the spec says; returns at once.
Status update(const CommandOptions& options, const SubmittedSpec& spec) {
  Result<std::unique_ptr<LiveSession>> session = LiveSession::open(options);
  if (!session) return forward_error(session);
  const Result<AskedUpdate> asked = asked_by(spec);
  if (!asked) return tl::unexpected(asked.error());
  const Result<std::uint64_t> job = service_job(**session, asked->service);
  if (!job) return tl::unexpected(job.error());
  const Result<std::uint64_t> updated = update_service(**session, *job, spec);
  if (!updated) return tl::unexpected(updated.error());
  const Result<v1::ServiceView> service = service_of_job(**session, *job);
  if (!service) return tl::unexpected(service.error());
  return print_live(options, updated_answer(*service));
}

Status submit(const CommandOptions& options, const SubmitOptions& asked) {
  const Result<SubmittedSpec> spec = read_submitted_spec(options, asked);
  if (!spec) return tl::unexpected(spec.error());
  print_message(spec->messages);
  if (asked.dry_run) return try_dry(options, *spec);
  if (asked.update) return update(options, *spec);
  Result<std::unique_ptr<LiveSession>> session = LiveSession::open(options);
  if (!session) return forward_error(session);
  const Result<v1::SubmitJobResponse> job = submit_job(**session, *spec);
  if (!job) return tl::unexpected(job.error());
  if (options.output == OutputFormat::kText || !asked.wait) {
    LiveAnswer answer = submitted_answer(*job);
    answer.after += key_note(*spec, *job);
    Status printed = print_live(options, answer);
    if (!printed) return printed;
    (void)std::fflush(stdout);
  }
  if (!asked.wait) return {};
  return print_ends(options, **session, submitted_numbers(*job));
}

void add_job_options(CLI::App& verb, SubmitOptions& asked) {
  add_allocation_options(verb, asked);
  verb.add_option("--framework", asked.launch.framework,
                  "framework whose environment variables describe each rank: torch, deepspeed, "
                  "tensorflow, jax or mpi (default: none)")
      ->type_name("NAME");
  verb.add_option("--per", asked.launch.per, "unit that gets one process each: accelerator or node")
      ->type_name("accelerator|node")
      ->capture_default_str();
  verb.add_option("--restarts", asked.terms.restarts,
                  "number of restarts after failures of the program itself (default: 0)")
      ->type_name("N");
  verb.add_option("--after", asked.terms.after,
                  "jobs to wait for: ok:JOB until the job has finished (the default form), any:JOB "
                  "until it has ended, notok:JOB until it has failed or was cancelled")
      ->type_name("[ok:|any:|notok:]JOB,..")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb.add_option("--by", asked.terms.by, "deadline of the job, in UTC: \"2026-11-27 18:00\"")
      ->type_name("TIME");
  verb.add_option("--under", asked.terms.under,
                  "budget of the job for rent and electricity: '$5000'")
      ->type_name("AMOUNT");
  verb.add_flag("--hold", asked.terms.hold, "hold the job until `orrery release`");
  verb.add_option(
          "--output-file", asked.launch.output,
          "file for a copy of the ranks' output, with the patterns of sbatch --output: out/%j.%t")
      ->type_name("FILE");
  verb.add_option("--error-file", asked.launch.error, "file for a copy of standard error only")
      ->type_name("FILE");
}

}  // namespace

void add_allocation_options(CLI::App& verb, SubmitOptions& asked) {
  verb.add_option(
      "--name", asked.name,
      "name of the job (default: the name of the verb, or of the program that is started)");
  verb.add_option("-n,--accelerators", asked.resources.accelerators,
                  "accelerators of the job, one rank on each")
      ->type_name("N")
      ->check(CLI::Range(1u, 1u << 20))
      ->capture_default_str();
  verb.add_option("--type", asked.resources.types,
                  "acceptable types of accelerators (default: any)")
      ->type_name("TYPE,..")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb.add_option("--cpus", asked.resources.cpus, "CPU cores for each accelerator")
      ->type_name("N")
      ->check(CLI::Range(0.001, 1e6));
  verb.add_option("--memory", asked.resources.memory,
                  "host memory for each accelerator: \"64 GiB\"")
      ->type_name("SIZE");
  verb.add_option("--tenant", asked.tenant, "tenant that the job is charged to")
      ->type_name("PATH")
      ->capture_default_str();
  verb.add_option("--priority", asked.terms.priority, "priority of the job, from -1000 to 1000")
      ->type_name("N")
      ->capture_default_str();
  verb.add_option("--time-limit", asked.terms.time_limit,
                  "time limit of each attempt, such as \"90 min\" (default: none)")
      ->type_name("TIME");
  verb.add_option("--env", asked.launch.environment,
                  "environment variable of the job; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  verb.add_option("--directory", asked.launch.directory,
                  "working directory of the job (default: the current directory)")
      ->type_name("PATH");
}

void add_submit_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto asked = std::make_shared<SubmitOptions>();
  CLI::App& verb = *app.add_subcommand(
      "submit", "submit a job: a job spec, an sbatch script, or a command after --");
  verb.footer(
      "Examples:\n"
      "  orrery submit -- python3 train.py --epochs 3\n"
      "  orrery submit -n 4 --framework torch --wait -- python3 train.py\n"
      "  orrery submit job.yaml\n"
      "  orrery submit job.yaml --by \"2026-11-27 18:00\" --under '$5000'\n"
      "  orrery submit examples/jobs/train-gpt.yaml --calibration node.yaml   (planned first)\n"
      "  orrery submit chat.yaml --update   (another revision, or number of replicas, of a "
      "service)\n"
      "  orrery submit train.sbatch small -- --epochs 3   (an sbatch script with arguments)\n"
      "  orrery submit --dry-run -- python3 train.py >job.yaml   (write the spec, to edit it)\n");
  verb.add_option("file", asked->file.name, "job spec or sbatch script; - reads standard input")
      ->type_name("FILE");
  verb.add_option("arguments", asked->file.arguments,
                  "arguments of the script; put arguments that start with a dash after --")
      ->type_name("ARG..");
  verb.add_option("--calibration", asked->file.calibration,
                  "calibration from `orrery calibrate-node`, used to plan the layout of a job of "
                  "orrery-train")
      ->type_name("FILE");
  verb.add_flag("--lenient", asked->file.lenient, "ignore unknown #SBATCH options of a script");
  add_job_options(verb, *asked);
  verb.add_flag("--update", asked->update,
                "update the running service of the spec's name, replica by replica")
      ->excludes(verb.add_flag("--wait", asked->wait,
                               "wait until the job has ended; exit status 0 if it finished"));
  verb.add_flag(
      "--dry-run", asked->dry_run,
      "print the spec and check it, without submitting it; a running cluster checks deadline and "
      "budget");
  verb.callback([&options, &chosen, asked] {
    chosen = [&options, asked] { return submit(options, *asked); };
  });
}

}  // namespace orrery
