// orrery jobs, job, wait, explain
#include <memory>

#include "apps/orrery/command.hpp"
#include "apps/orrery/job_options.hpp"
#include "apps/orrery/output.hpp"
#include "verbs/jobs/job_answer.hpp"
#include "verbs/services/request_explanation.hpp"

namespace orrery {
namespace {

struct JobsOptions {
  JobFilter filter;
  std::vector<std::string> ids;
  std::string request;  ///< to a service, which `explain` is about; empty: it is about a job
};

Status ask_jobs(const CommandOptions& options, const JobsOptions& asked) {
  Result<std::unique_ptr<LiveSession>> session = LiveSession::open(options);
  if (!session) return forward_error(session);
  return print_live(options, answer_jobs(live_call(options, **session), asked.filter));
}

Status ask_job(const CommandOptions& options, const JobsOptions& asked) {
  Result<std::unique_ptr<LiveSession>> session = LiveSession::open(options);
  if (!session) return forward_error(session);
  return print_live(options, answer_job(live_call(options, **session), asked.ids.front()));
}

using JobsVerb = Status (*)(const CommandOptions&, LiveSession&, const std::vector<std::uint64_t>&);

Status run_on_jobs(const CommandOptions& options, const JobsOptions& asked, JobsVerb verb) {
  Result<std::vector<std::uint64_t>> ids = job_ids(asked.ids);
  if (!ids) return forward_error(ids);
  Result<std::unique_ptr<LiveSession>> session = LiveSession::open(options);
  if (!session) return forward_error(session);
  return verb(options, **session, *ids);
}

Status explain(const CommandOptions& options, const JobsOptions& asked) {
  if (asked.ids.empty() == asked.request.empty()) {
    return input_error({}, "expected a job, or --request and the id of a request");
  }
  Result<std::unique_ptr<LiveSession>> session = LiveSession::open(options);
  if (!session) return forward_error(session);
  if (asked.request.empty()) {
    return print_live(options, explain_job(live_call(options, **session), asked.ids.front()));
  }
  return print_live(options, explain_request(live_call(options, **session), asked.request));
}

void add_explain_command(CLI::App& app, const CommandOptions& options, Verb& chosen) {
  auto asked = std::make_shared<JobsOptions>();
  CLI::App& verb = *app.add_subcommand(
      "explain",
      "explain why a job waits and what would start it, what slows a running one, or where a "
      "request to a service went");
  verb.footer(
      "Examples:\n  orrery explain 7\n  orrery explain chat\n  orrery explain --request 4f1c");
  verb.add_option("id", asked->ids, "number or name")->type_name("JOB")->expected(1);
  verb.add_option("--request", asked->request,
                  "x-request-id of an answer: the gateway says how it chose the replica")
      ->type_name("ID");
  verb.callback([&options, &chosen, asked] {
    chosen = [&options, asked] { return explain(options, *asked); };
  });
}

}  // namespace

void add_job_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto asked = std::make_shared<JobsOptions>();
  CLI::App& jobs = *app.add_subcommand("jobs", "list the jobs of a running cluster");
  jobs.add_flag("--all,-a", asked->filter.all, "include jobs that have ended");
  jobs.add_option("--tenant", asked->filter.tenant, "jobs of this tenant only")->type_name("PATH");
  jobs.add_option("--state", asked->filter.phase,
                  "jobs in this state: held, queued, starting, running, stopping, finished, failed "
                  "or cancelled")
      ->type_name("STATE");
  jobs.add_option("--user", asked->filter.user, "jobs that this user submitted")->type_name("NAME");
  jobs.add_option("--name", asked->filter.name,
                  "jobs whose name matches PATTERN (* any characters, ? one)")
      ->type_name("PATTERN");
  jobs.footer(
      "Examples:\n  orrery jobs\n  orrery jobs --all --tenant lab/vision -o json\n"
      "  orrery jobs --all --name 'train-*'");
  jobs.callback([&options, &chosen, asked] {
    chosen = [&options, asked] { return ask_jobs(options, *asked); };
  });
  CLI::App& job =
      *app.add_subcommand("job", "show the details of a job, or the jobs of an array or service");
  job.footer("Examples:\n  orrery job 7\n  orrery job chat\n  orrery job 'sweep[3]'");
  job.add_option("id", asked->ids, "number or name")->type_name("JOB")->required()->expected(1);
  job.callback([&options, &chosen, asked] {
    chosen = [&options, asked] { return ask_job(options, *asked); };
  });
  add_explain_command(app, options, chosen);
  CLI::App& wait = *app.add_subcommand(
      "wait", "wait until jobs have ended; exit status 0 if all jobs finished, else 1");
  wait.footer("Example:\n  orrery wait 7 8");
  wait.add_option("id", asked->ids, "numbers of the jobs")->type_name("JOB..")->required();
  wait.callback([&options, &chosen, asked] {
    chosen = [&options, asked] { return run_on_jobs(options, *asked, print_ends); };
  });
}

}  // namespace orrery
