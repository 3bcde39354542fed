// orrery cancel
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "apps/orrery/command.hpp"
#include "apps/orrery/live_lists.hpp"
#include "base/count_text.hpp"
#include "base/nearest_name.hpp"
#include "base/text_table.hpp"

namespace orrery {
namespace {

struct CancelOptions {
  std::vector<std::string> jobs;
  std::string name;
  std::string tenant;
  std::string user;
  std::string phase;
  bool dry_run = false;

  [[nodiscard]] bool filtered() const {
    return !name.empty() || !tenant.empty() || !user.empty() || !phase.empty();
  }
};

/// A job to cancel.
struct CancelTarget {
  std::uint64_t id = 0;
  std::string name;  ///< empty: it was named by its number
  std::string phase;
};

struct CancelOutcome {
  Json cancelled = Json::array();
  Json failed = Json::array();
};

bool is_number(const std::string& text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Result<std::vector<CancelTarget>> listed(LiveSession& session, const v1::ListJobsRequest& request) {
  const Result<v1::ListJobsResponse> jobs = list_jobs(session, request);
  if (!jobs) return tl::unexpected(jobs.error());
  std::vector<CancelTarget> targets;
  for (const v1::Job& job : jobs->jobs()) targets.push_back({job.id(), job.name(), job.phase()});
  std::ranges::sort(targets, {}, &CancelTarget::id);
  return targets;
}

/// The jobs of that name that have not ended: one job, all of an array, or one of it ("sweep[3]").
Result<std::vector<CancelTarget>> named(LiveSession& session, const std::string& name) {
  v1::ListJobsRequest request;
  request.set_name(name);
  Result<std::vector<CancelTarget>> targets = listed(session, request);
  if (!targets) return targets;
  if (!name.ends_with(']')) {
    request.set_name(name + "[*]");
    Result<std::vector<CancelTarget>> tasks = listed(session, request);
    if (!tasks) return tasks;
    targets->insert(targets->end(), tasks->begin(), tasks->end());
  }
  if (!targets->empty()) return targets;
  return input_error({}, fmt::format("no job named \"{}\" is waiting or running; `orrery jobs` "
                                     "shows names and numbers",
                                     name));
}

Result<std::vector<CancelTarget>> targets_of(LiveSession& session, const CancelOptions& asked) {
  if (asked.filtered()) {
    v1::ListJobsRequest request;
    request.set_name(asked.name);
    request.set_tenant(asked.tenant);
    request.set_user(asked.user);
    request.set_phase(asked.phase);
    return listed(session, request);
  }
  std::vector<CancelTarget> targets;
  for (const std::string& text : asked.jobs) {
    if (is_number(text)) {
      const Result<std::uint64_t> id = job_id(text);
      if (!id) return tl::unexpected(id.error());
      targets.push_back({.id = *id, .name = {}, .phase = {}});
      continue;
    }
    Result<std::vector<CancelTarget>> of_name = named(session, text);
    if (!of_name) return of_name;
    targets.insert(targets.end(), of_name->begin(), of_name->end());
  }
  return targets;
}

std::string text_of(const CancelTarget& target) {
  return target.name.empty() ? fmt::format("job {}", target.id)
                             : one_line(fmt::format("job {} ({})", target.id, target.name));
}

/// Cancels one job and reports it.
void cancel(const CommandOptions& options, LiveSession& session, const CancelTarget& target,
            CancelOutcome& outcome) {
  v1::CancelJobRequest request;
  request.set_request_id(session.request_id());
  request.set_id(target.id);
  const auto done = session.client().call<v1::CancelJobResponse>("CancelJob", request);
  const std::string id = fmt::format("{}", target.id);
  if (done) {
    outcome.cancelled.push_back(id);
    if (options.output == OutputFormat::kText) print_text(text_of(target) + " cancelled\n");
    return;
  }
  outcome.failed.push_back({{"id", id}, {"why", done.error().text()}});
  // The controller names the job by its number.
  const std::string name = target.name.empty() ? "" : one_line(target.name) + ": ";
  print_message(fmt::format("orrery: {}{}\n", name, done.error().text()));
}

void print_targets(const CommandOptions& options, const std::vector<CancelTarget>& targets) {
  if (options.output == OutputFormat::kJson) {
    Json ids = Json::array();
    for (const CancelTarget& target : targets) ids.push_back(fmt::format("{}", target.id));
    return print_json({{"would_cancel", ids}});
  }
  TextTable table({{"ID", Align::kRight}, {"NAME"}, {"STATE"}});
  for (const CancelTarget& target : targets) {
    table.add({fmt::format("{}", target.id), target.name, target.phase});
  }
  print_shown(table.text());
  print_text(fmt::format("{} would be cancelled\n", counted(targets.size(), "job")));
}

Status cancel_all(const CommandOptions& options, LiveSession& session, const CancelOptions& asked) {
  const Result<std::vector<CancelTarget>> targets = targets_of(session, asked);
  if (!targets) return tl::unexpected(targets.error());
  if (asked.dry_run) {
    print_targets(options, *targets);
    return {};
  }
  CancelOutcome outcome;
  for (const CancelTarget& target : *targets) cancel(options, session, target, outcome);
  if (options.output == OutputFormat::kJson) {
    print_json({{"cancelled", outcome.cancelled}, {"failed", outcome.failed}});
  } else if (targets->empty()) {
    print_text("no job matches\n");
  }
  if (outcome.failed.empty()) return {};
  return infeasible(fmt::format("{} of {} could not be cancelled", outcome.failed.size(),
                                counted(targets->size(), "job")));
}

Status check(const CancelOptions& asked) {
  if (asked.jobs.empty() && !asked.filtered()) {
    return input_error({},
                       "nothing to cancel: expected numbers or names of jobs, or --name, "
                       "--tenant, --user or --state");
  }
  if (!asked.jobs.empty() && asked.filtered()) {
    return input_error({}, fmt::format("\"{}\" and a filter: expected jobs, or --name, --tenant, "
                                       "--user and --state, not both",
                                       asked.jobs.front()));
  }
  constexpr std::string_view kStates[] = {"held", "queued", "starting", "running", "stopping"};
  if (asked.phase.empty() || std::ranges::find(kStates, asked.phase) != std::end(kStates)) {
    return {};
  }
  return input_error({}, fmt::format("--state \"{}\"{}: expected one of {}", asked.phase,
                                     did_you_mean(asked.phase, kStates), fmt::join(kStates, ", ")));
}

}  // namespace

void add_cancel_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto asked = std::make_shared<CancelOptions>();
  CLI::App& added = *app.add_subcommand("cancel", "end jobs for good");
  added.add_option("job", asked->jobs, "numbers or names; the name of an array means all its jobs")
      ->type_name("JOB..");
  added
      .add_option("--name", asked->name,
                  "jobs with a name like this: * stands for any letters, ? for one")
      ->type_name("PATTERN");
  added.add_option("--tenant", asked->tenant, "jobs of this tenant")->type_name("PATH");
  added.add_option("--user", asked->user, "jobs that this user submitted")->type_name("NAME");
  added.add_option("--state", asked->phase, "jobs that are held, queued, starting or running")
      ->type_name("STATE");
  added.add_flag("--dry-run", asked->dry_run, "only show which jobs would be cancelled");
  added.footer(
      "Each job is reported; exit 1 if one could not be cancelled.\n"
      "Examples:\n  orrery cancel 7 8\n  orrery cancel sweep 'sweep[3]'\n"
      "  orrery cancel --tenant lab --state queued --dry-run");
  added.callback([&options, &chosen, asked] {
    chosen = [&options, asked]() -> Status {
      if (Status good = check(*asked); !good) return good;
      Result<std::unique_ptr<LiveSession>> session = LiveSession::open(options);
      if (!session) return forward_error(session);
      return cancel_all(options, **session, *asked);
    };
  });
}

}  // namespace orrery
