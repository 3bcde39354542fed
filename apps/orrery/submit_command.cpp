// orrery submit
#include <fmt/format.h>

#include <memory>

#include "apps/orrery/command.hpp"
#include "apps/orrery/job_options.hpp"
#include "apps/orrery/output.hpp"
#include "apps/orrery/submit_options.hpp"
#include "base/format/document.hpp"
#include "orrery/v1/orrery.pb.h"
#include "verbs/plan/planned_job.hpp"
#include "verbs/schedule/submit_request.hpp"

namespace orrery {
namespace {

struct SubmittedSpec {
  std::string text;
  std::string file;
};

Result<SubmittedSpec> spec_of_script(const SubmitOptions& asked, std::string_view script) {
  Result<ScriptSpec> spec = script_job_spec(asked, script);
  if (!spec) return forward_error(spec);
  for (const std::string& note : spec->notes) print_message(fmt::format("note: {}\n", note));
  return SubmittedSpec{std::move(spec->text), asked.file};
}

Result<SubmittedSpec> spec_of(const CommandOptions& options, SubmitOptions& asked) {
  if (options.command && asked.file.empty()) {
    Result<std::string> text = command_job_spec(asked, *options.command);
    if (!text) return forward_error(text);
    return SubmittedSpec{*std::move(text), "command line"};
  }
  if (asked.file.empty()) {
    return input_error({}, "nothing to submit: expected a FILE, or a command after --");
  }
  Result<std::string> text = read_file(asked.file, Document::kSizeMax);
  if (!text && !options.command) return forward_error(text);
  if (text && is_script(asked.file, *text)) {
    if (options.command) {
      asked.arguments.insert(asked.arguments.end(), options.command->begin(),
                             options.command->end());
    }
    return spec_of_script(asked, *text);
  }
  if (options.command) {
    return input_error(
        {}, fmt::format("both {} and a command after --: expected one of them", asked.file));
  }
  if (!asked.arguments.empty()) {
    return input_error({}, fmt::format("{}: expected no arguments after {}, which is not a script",
                                       asked.arguments[0], asked.file));
  }
  text = overruled_job_spec(asked, *std::move(text));
  if (!text) return forward_error(text);
  if (asked.calibration.empty()) return SubmittedSpec{*std::move(text), asked.file};
  Result<PlannedJob> planned = plan_job(options, {*text, asked.file}, asked.calibration);
  if (!planned) return forward_error(planned);
  print_message(planned->why);
  return SubmittedSpec{std::move(planned->text), asked.file};
}

std::string accepted(const v1::SubmitJobResponse& job) {
  const std::string name = one_line(job.name());
  if (job.array_size() < 2) return fmt::format("job {} ({}) accepted\n", job.id(), name);
  return fmt::format("jobs {} to {} ({}) accepted\n", job.array(0), job.array(job.array_size() - 1),
                     name);
}

void print_note(const std::string& note) {
  if (!note.empty()) print_message(fmt::format("note: {}\n", one_line(note)));
}

/// Whether a spec says by when or for how much, which a cluster has to be asked about.
bool is_bounded(const SubmittedSpec& spec) {
  const Result<Document> document = Document::parse(spec.text, spec.file);
  if (!document) return false;
  const Result<JobSpec> job = read_job_spec(*document);
  return job && (job->deadline || job->budget);
}

/// Prints the spec. The cluster, where there is one, says whether deadline and budget can be kept.
Status try_dry(const CommandOptions& options, const SubmittedSpec& spec) {
  print_bytes(spec.text);
  if (!is_bounded(spec)) return {};
  Result<std::unique_ptr<LiveSession>> session = LiveSession::open(options);
  if (!session) {
    print_note("deadline and budget were not checked, no cluster was found: " +
               session.error().message);
    return {};
  }
  v1::SubmitJobRequest request;
  request.set_dry_run(true);
  request.set_spec(spec.text);
  request.set_file(spec.file);
  auto answer = (*session)->client().call<v1::SubmitJobResponse>("SubmitJob", request);
  if (!answer && answer.error().kind == ErrorKind::kEnvironment) {
    print_note("deadline and budget were not checked, the cluster did not answer: " +
               answer.error().message);
    return {};
  }
  if (!answer) return forward_error(answer);
  print_note(answer->note());
  return {};
}

Status submit(const CommandOptions& options, SubmitOptions& asked) {
  Result<SubmittedSpec> spec = spec_of(options, asked);
  if (!spec) return forward_error(spec);
  if (asked.dry_run) return try_dry(options, *spec);
  Result<std::unique_ptr<LiveSession>> session = LiveSession::open(options);
  if (!session) return forward_error(session);
  v1::SubmitJobRequest request;
  request.set_request_id((*session)->request_id());
  request.set_spec(std::move(spec->text));
  request.set_file(std::move(spec->file));
  auto job = (*session)->client().call<v1::SubmitJobResponse>("SubmitJob", request);
  if (!job) return forward_error(job);
  if (options.output == OutputFormat::kText) {
    print_text(accepted(*job));
    print_note(job->note());
    (void)std::fflush(stdout);
  } else if (!asked.wait) {
    print_answer(*job);
  }
  if (!asked.wait) return {};
  std::vector<std::uint64_t> ids(job->array().begin(), job->array().end());
  if (ids.empty()) ids.push_back(job->id());
  return print_ends(options, **session, ids);
}

void add_job_options(CLI::App& verb, SubmitOptions& asked) {
  add_allocation_options(verb, asked);
  verb.add_option("--framework", asked.framework,
                  "framework whose environment variables describe each rank: torch, deepspeed, "
                  "tensorflow, jax or mpi (default: none)")
      ->type_name("NAME");
  verb.add_option("--per", asked.per, "unit that gets one process each: accelerator or node")
      ->type_name("accelerator|node")
      ->capture_default_str();
  verb.add_option("--restarts", asked.restarts,
                  "number of restarts after failures of the program itself (default: 0)")
      ->type_name("N");
  verb.add_option("--after", asked.after,
                  "jobs to wait for: ok:JOB until the job has finished (the default form), any:JOB "
                  "until it has ended, notok:JOB until it has failed or was cancelled")
      ->type_name("[ok:|any:|notok:]JOB,..")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb.add_option("--by", asked.by, "deadline of the job, in UTC: \"2026-11-27 18:00\"")
      ->type_name("TIME");
  verb.add_option("--under", asked.under, "budget of the job for rent and electricity: '$5000'")
      ->type_name("AMOUNT");
  verb.add_flag("--hold", asked.hold, "hold the job until `orrery release`");
  verb.add_option(
          "--output-file", asked.output,
          "file for a copy of the ranks' output, with the patterns of sbatch --output: out/%j.%t")
      ->type_name("FILE");
  verb.add_option("--error-file", asked.error, "file for a copy of standard error only")
      ->type_name("FILE");
}

}  // namespace

void add_allocation_options(CLI::App& verb, SubmitOptions& asked) {
  verb.add_option(
      "--name", asked.name,
      "name of the job (default: the name of the verb, or of the program that is started)");
  verb.add_option("-n,--accelerators", asked.accelerators,
                  "accelerators of the job, one rank on each")
      ->type_name("N")
      ->check(CLI::Range(1u, 1u << 20))
      ->capture_default_str();
  verb.add_option("--type", asked.types, "acceptable types of accelerators (default: any)")
      ->type_name("TYPE,..")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb.add_option("--cpus", asked.cpus, "CPU cores for each accelerator")
      ->type_name("N")
      ->check(CLI::Range(0.001, 1e6));
  verb.add_option("--memory", asked.memory, "host memory for each accelerator: \"64 GiB\"")
      ->type_name("SIZE");
  verb.add_option("--tenant", asked.tenant, "tenant that the job is charged to")
      ->type_name("PATH")
      ->capture_default_str();
  verb.add_option("--priority", asked.priority, "priority of the job, from -1000 to 1000")
      ->type_name("N")
      ->capture_default_str();
  verb.add_option("--time-limit", asked.time_limit,
                  "time limit of each attempt, such as \"90 min\" (default: none)")
      ->type_name("TIME");
  verb.add_option("--env", asked.environment, "environment variable of the job; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  verb.add_option("--directory", asked.directory,
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
      "  orrery submit train.sbatch small -- --epochs 3   (an sbatch script with arguments)\n"
      "  orrery submit --dry-run -- python3 train.py >job.yaml   (write the spec, to edit it)\n");
  verb.add_option("file", asked->file, "job spec or sbatch script; - reads standard input")
      ->type_name("FILE");
  verb.add_option("arguments", asked->arguments,
                  "arguments of the script; put arguments that start with a dash after --")
      ->type_name("ARG..");
  verb.add_option("--calibration", asked->calibration,
                  "calibration from `orrery calibrate-node`, used to plan the layout of a job of "
                  "orrery-train")
      ->type_name("FILE");
  verb.add_flag("--lenient", asked->lenient, "ignore unknown #SBATCH options of a script");
  add_job_options(verb, *asked);
  verb.add_flag("--wait", asked->wait,
                "wait until the job has ended; exit status 0 if it finished");
  verb.add_flag(
      "--dry-run", asked->dry_run,
      "print the spec without submitting it; a running cluster checks the deadline and the budget");
  verb.callback([&options, &chosen, asked] {
    chosen = [&options, asked] { return submit(options, *asked); };
  });
}

}  // namespace orrery
