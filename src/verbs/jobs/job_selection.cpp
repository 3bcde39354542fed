#include "verbs/jobs/job_selection.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "base/text/nearest_name.hpp"
#include "base/text/terminal_text.hpp"
#include "verbs/cluster/live_lists.hpp"

namespace orrery {
namespace {

bool is_number(const std::string& text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Result<std::vector<SelectedJob>> listed(LiveSession& session, const v1::ListJobsRequest& request) {
  const Result<v1::ListJobsResponse> jobs = list_jobs(session, request);
  if (!jobs) return tl::unexpected(jobs.error());
  std::vector<SelectedJob> targets;
  for (const v1::Job& job : jobs->jobs()) targets.push_back({job.id(), job.name(), job.phase()});
  std::ranges::sort(targets, {}, &SelectedJob::id);
  return targets;
}

/// The jobs of that name that have not ended: one job, all of an array, or one of it ("sweep[3]").
Result<std::vector<SelectedJob>> named(LiveSession& session, const std::string& name) {
  v1::ListJobsRequest request;
  request.set_name(name);
  Result<std::vector<SelectedJob>> targets = listed(session, request);
  if (!targets) return targets;
  if (!name.ends_with(']')) {
    request.set_name(name + "[*]");
    Result<std::vector<SelectedJob>> tasks = listed(session, request);
    if (!tasks) return tasks;
    targets->insert(targets->end(), tasks->begin(), tasks->end());
  }
  return targets;
}

Error no_such_name(const std::string& name) {
  return {ErrorKind::kInput,
          fmt::format("no job named \"{}\" is waiting or running; `orrery jobs` shows names and "
                      "numbers",
                      name),
          {}};
}

}  // namespace

std::string SelectedJob::text() const {
  return name.empty() ? fmt::format("job {}", id) : one_line(fmt::format("job {} ({})", id, name));
}

Status check(const JobSelection& asked, std::string_view verb) {
  if (asked.jobs.empty() && !asked.filtered()) {
    return input_error({}, fmt::format("nothing to {}: expected numbers or names of jobs, or a "
                                       "filter (--name, --tenant, --user or --state)",
                                       verb));
  }
  if (!asked.jobs.empty() && asked.filtered()) {
    return input_error({}, fmt::format("\"{}\" and a filter: expected jobs or a filter (--name, "
                                       "--tenant, --user, --state), not both",
                                       asked.jobs.front()));
  }
  constexpr std::string_view kStates[] = {"held", "queued", "starting", "running", "stopping"};
  if (asked.phase.empty() || std::ranges::find(kStates, asked.phase) != std::end(kStates)) {
    return {};
  }
  return input_error({}, fmt::format("--state \"{}\"{}: expected one of {}", asked.phase,
                                     did_you_mean(asked.phase, kStates), fmt::join(kStates, ", ")));
}

Result<SelectedJobs> selected_jobs(LiveSession& session, const JobSelection& asked) {
  SelectedJobs selected;
  if (asked.filtered()) {
    v1::ListJobsRequest request;
    request.set_name(asked.name);
    request.set_tenant(asked.tenant);
    request.set_user(asked.user);
    request.set_phase(asked.phase);
    Result<std::vector<SelectedJob>> jobs = listed(session, request);
    if (!jobs) return forward_error(jobs);
    selected.jobs = *std::move(jobs);
    return selected;
  }
  for (const std::string& text : asked.jobs) {
    if (is_number(text)) {
      const Result<std::uint64_t> id = job_id(text);
      if (!id) return tl::unexpected(id.error());
      selected.jobs.push_back({.id = *id, .name = {}, .phase = {}});
      continue;
    }
    const Result<std::vector<SelectedJob>> of_name = named(session, text);
    if (!of_name) return tl::unexpected(of_name.error());
    if (of_name->empty()) selected.unknown.push_back({text, no_such_name(text)});
    selected.jobs.insert(selected.jobs.end(), of_name->begin(), of_name->end());
  }
  std::unordered_set<std::uint64_t> seen;
  std::erase_if(selected.jobs, [&](const SelectedJob& job) { return !seen.insert(job.id).second; });
  return selected;
}

}  // namespace orrery
