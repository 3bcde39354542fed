// orrery jobs, job, wait, explain
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <memory>
#include <utility>

#include "apps/orrery/command.hpp"
#include "apps/orrery/job_options.hpp"
#include "apps/orrery/output.hpp"
#include "base/text/count_text.hpp"
#include "verbs/cluster/live_lists.hpp"
#include "verbs/cluster/live_text.hpp"

namespace orrery {

namespace {

struct JobsAsked {
  std::vector<std::string> ids;
  std::string tenant;
  std::string phase;
  std::string name;
  std::string user;
  bool all = false;
};

Result<std::vector<std::uint64_t>> job_ids(const std::vector<std::string>& texts) {
  std::vector<std::uint64_t> ids;
  ids.reserve(texts.size());
  for (const std::string& text : texts) {
    const Result<std::uint64_t> id = job_id(text);
    if (!id) return tl::unexpected(id.error());
    ids.push_back(*id);
  }
  return ids;
}

Status print_jobs(const CommandOptions& options, LiveSession& session, const JobsAsked& asked) {
  v1::ListJobsRequest request;
  request.set_all(asked.all || !asked.phase.empty());
  request.set_tenant(asked.tenant);
  request.set_phase(asked.phase);
  request.set_name(asked.name);
  request.set_user(asked.user);
  Result<v1::ListJobsResponse> jobs = list_jobs(session, std::move(request));
  if (!jobs) return forward_error(jobs);
  if (options.output == OutputFormat::kJson) {
    print_answer(*jobs);
  } else {
    print_shown(LiveText::of(options).jobs({jobs->jobs().begin(), jobs->jobs().end()}));
  }
  return {};
}

Status print_job(const CommandOptions& options, LiveSession& session, std::uint64_t id) {
  v1::GetJobRequest request;
  request.set_id(id);
  Result<v1::Job> job = session.client().call<v1::Job>("GetJob", request);
  if (!job) return forward_error(job);
  if (options.output == OutputFormat::kJson) {
    print_answer(*job);
  } else {
    print_shown(LiveText::of(options).job(*job));
  }
  return {};
}

/// Prints "16 jobs: 15 running, 1 queued" and the jobs.
void print_array(const CommandOptions& options, const std::vector<v1::Job>& jobs) {
  std::map<std::string, std::size_t> phases;
  for (const v1::Job& job : jobs) ++phases[job.phase()];
  std::vector<std::string> counts;
  counts.reserve(phases.size());
  for (const auto& [phase, count] : phases) counts.push_back(fmt::format("{} {}", count, phase));
  print_text(fmt::format("{}: {}\n", counted(jobs.size(), "job"), fmt::join(counts, ", ")));
  print_shown(LiveText::of(options).jobs(jobs));
}

/// Prints the job of a name, or all jobs of an array or service, ended ones included.
Status print_named(const CommandOptions& options, LiveSession& session, const std::string& name) {
  v1::ListJobsRequest request;
  request.set_all(true);
  request.set_name(name);
  Result<v1::ListJobsResponse> jobs = list_jobs(session, request);
  if (jobs && jobs->jobs().empty()) {
    request.set_name(name + "[*]");
    jobs = list_jobs(session, request);
  }
  if (!jobs) return forward_error(jobs);
  if (jobs->jobs().empty()) {
    return input_error({},
                       fmt::format("there is no job \"{}\": expected a number or a name; `orrery "
                                   "jobs --all` lists them",
                                   name));
  }
  if (jobs->jobs_size() == 1) return print_job(options, session, jobs->jobs(0).id());
  if (options.output == OutputFormat::kJson) {
    print_answer(*jobs);
  } else {
    print_array(options, {jobs->jobs().begin(), jobs->jobs().end()});
  }
  return {};
}

/// Prints what is known of a job, by its number or name.
Status print_job_or_array(const CommandOptions& options, LiveSession& session,
                          const std::string& text) {
  if (const Result<std::uint64_t> id = job_id(text)) return print_job(options, session, *id);
  return print_named(options, session, text);
}

Status explain_job(const CommandOptions& options, LiveSession& session, std::uint64_t id) {
  v1::ExplainJobRequest request;
  request.set_id(id);
  auto why = session.client().call<v1::Explanation>("ExplainJob", request);
  if (!why) return forward_error(why);
  if (options.output == OutputFormat::kJson) {
    print_answer(*why);
    return {};
  }
  std::string text = why->text();
  if (!text.ends_with('\n')) text += '\n';
  print_text(text);
  return {};
}

using JobsVerb = Status (*)(const CommandOptions&, LiveSession&, const std::vector<std::uint64_t>&);
using JobVerb = Status (*)(const CommandOptions&, LiveSession&, std::uint64_t);

Status run_on_jobs(const CommandOptions& options, const JobsAsked& asked, JobsVerb verb) {
  Result<std::vector<std::uint64_t>> ids = job_ids(asked.ids);
  if (!ids) return forward_error(ids);
  Result<std::unique_ptr<LiveSession>> session = LiveSession::open(options);
  if (!session) return forward_error(session);
  return verb(options, **session, *ids);
}

Status run_on_job(const CommandOptions& options, const JobsAsked& asked, JobVerb verb) {
  Result<std::vector<std::uint64_t>> ids = job_ids(asked.ids);
  if (!ids) return forward_error(ids);
  Result<std::unique_ptr<LiveSession>> session = LiveSession::open(options);
  if (!session) return forward_error(session);
  return verb(options, **session, ids->front());
}

}  // namespace

void add_job_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto asked = std::make_shared<JobsAsked>();
  CLI::App& jobs = *app.add_subcommand("jobs", "list the jobs of a running cluster");
  jobs.add_flag("--all,-a", asked->all, "include jobs that have ended");
  jobs.add_option("--tenant", asked->tenant, "jobs of this tenant only")->type_name("PATH");
  jobs.add_option("--state", asked->phase,
                  "jobs in this state: held, queued, starting, running, stopping, finished, failed "
                  "or cancelled")
      ->type_name("STATE");
  jobs.add_option("--user", asked->user, "jobs that this user submitted")->type_name("NAME");
  jobs.add_option("--name", asked->name,
                  "jobs whose name matches PATTERN (* any characters, ? one)")
      ->type_name("PATTERN");
  jobs.footer(
      "Examples:\n  orrery jobs\n  orrery jobs --all --tenant lab/vision -o json\n"
      "  orrery jobs --all --name 'train-*'");
  jobs.callback([&options, &chosen, asked] {
    chosen = [&options, asked]() -> Status {
      Result<std::unique_ptr<LiveSession>> session = LiveSession::open(options);
      if (!session) return forward_error(session);
      return print_jobs(options, **session, *asked);
    };
  });
  const auto add_one = [&](const char* name, const char* what, JobVerb verb) {
    CLI::App& added = *app.add_subcommand(name, what);
    added.add_option("id", asked->ids, "number of the job")
        ->type_name("JOB")
        ->required()
        ->expected(1);
    added.callback([&options, &chosen, asked, verb] {
      chosen = [&options, asked, verb] { return run_on_job(options, *asked, verb); };
    });
  };
  CLI::App& job =
      *app.add_subcommand("job", "show the details of a job, or the jobs of an array or service");
  job.footer("Examples:\n  orrery job 7\n  orrery job chat\n  orrery job 'sweep[3]'");
  job.add_option("id", asked->ids, "number or name")->type_name("JOB")->required()->expected(1);
  job.callback([&options, &chosen, asked] {
    chosen = [&options, asked]() -> Status {
      Result<std::unique_ptr<LiveSession>> session = LiveSession::open(options);
      if (!session) return forward_error(session);
      return print_job_or_array(options, **session, asked->ids.front());
    };
  });
  add_one("explain",
          "explain why a job waits and what would start it, or why it runs where it does",
          explain_job);
  CLI::App& wait = *app.add_subcommand(
      "wait", "wait until jobs have ended; exit status 0 if all jobs finished, else 1");
  wait.footer("Example:\n  orrery wait 7 8");
  wait.add_option("id", asked->ids, "numbers of the jobs")->type_name("JOB..")->required();
  wait.callback([&options, &chosen, asked] {
    chosen = [&options, asked] { return run_on_jobs(options, *asked, print_ends); };
  });
}

}  // namespace orrery
