#include "verbs/jobs/job_answer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>
#include <utility>

#include "base/text/count_text.hpp"
#include "base/text/terminal_text.hpp"
#include "verbs/cluster/live_lists.hpp"
#include "verbs/cluster/service_text.hpp"

namespace orrery {
namespace {

std::vector<v1::Job> rows_of(const v1::ListJobsResponse& jobs) {
  return {jobs.jobs().begin(), jobs.jobs().end()};
}

Result<LiveAnswer> answer_numbered(const LiveCall& call, std::uint64_t id) {
  v1::GetJobRequest request;
  request.set_id(id);
  Result<v1::Job> job = call.session.client().call<v1::Job>("GetJob", request);
  if (!job) return forward_error(job);
  std::string text = call.text.job(*job);
  return live_answer(*std::move(job), std::move(text));
}

/// Gets the service that the jobs are the replicas of, with the first of them; returns its tables,
/// "" where there is none.
std::string add_service(const LiveCall& call, v1::ListJobsResponse& jobs) {
  if (jobs.jobs(0).kind() != "Serve") return "";
  v1::GetJobRequest request;
  request.set_id(jobs.jobs(0).id());
  Result<v1::Job> job = call.session.client().call<v1::Job>("GetJob", request);
  if (!job || !job->has_service()) return "";
  *jobs.mutable_jobs(0)->mutable_service() = std::move(*job->mutable_service());
  return "\n" + service_text(call.text, jobs.jobs(0).service());
}

/// Returns the jobs of a name, or of the array or service of that name, ended ones included.
Result<v1::ListJobsResponse> jobs_named(const LiveCall& call, const std::string& name) {
  v1::ListJobsRequest request;
  request.set_all(true);
  request.set_name(name);
  Result<v1::ListJobsResponse> jobs = list_jobs(call.session, request);
  if (jobs && jobs->jobs().empty()) {
    request.set_name(name + "[*]");
    jobs = list_jobs(call.session, request);
  }
  if (!jobs || !jobs->jobs().empty()) return jobs;
  return input_error({}, fmt::format("there is no job \"{}\": expected a number or a name; `orrery "
                                     "jobs --all` lists them",
                                     name));
}

Result<LiveAnswer> answer_named(const LiveCall& call, const std::string& name) {
  Result<v1::ListJobsResponse> jobs = jobs_named(call, name);
  if (!jobs) return forward_error(jobs);
  if (jobs->jobs_size() == 1) return answer_numbered(call, jobs->jobs(0).id());
  const std::string service = add_service(call, *jobs);
  std::string text = job_group_text(call.text, rows_of(*jobs)) + service;
  return live_answer(*std::move(jobs), std::move(text));
}

/// Returns the first job that waits, else the first that has not ended.
const v1::Job& most_questionable(const v1::ListJobsResponse& jobs) {
  for (const auto& phases : {std::set<std::string>{"held", "queued"},
                             std::set<std::string>{"starting", "running", "stopping"}}) {
    for (const v1::Job& job : jobs.jobs()) {
      if (phases.contains(job.phase())) return job;
    }
  }
  return jobs.jobs(0);
}

}  // namespace

v1::ListJobsRequest request_of(const JobFilter& filter) {
  v1::ListJobsRequest request;
  request.set_all(filter.all || !filter.phase.empty());
  request.set_tenant(filter.tenant);
  request.set_phase(filter.phase);
  request.set_name(filter.name);
  request.set_user(filter.user);
  return request;
}

Result<LiveAnswer> answer_jobs(const LiveCall& call, const JobFilter& filter) {
  Result<v1::ListJobsResponse> jobs = list_jobs(call.session, request_of(filter));
  if (!jobs) return forward_error(jobs);
  std::string text = call.text.jobs(rows_of(*jobs));
  return live_answer(*std::move(jobs), std::move(text));
}

Result<LiveAnswer> answer_job(const LiveCall& call, const std::string& number_or_name) {
  const Result<std::uint64_t> id = job_id(number_or_name);
  return id ? answer_numbered(call, *id) : answer_named(call, number_or_name);
}

std::string job_group_text(const LiveText& text, const std::vector<v1::Job>& jobs) {
  std::map<std::string, std::size_t> phases;
  for (const v1::Job& job : jobs) ++phases[job.phase()];
  std::vector<std::string> counts;
  counts.reserve(phases.size());
  for (const auto& [phase, count] : phases) counts.push_back(fmt::format("{} {}", count, phase));
  return one_line(fmt::format("{}: {}", counted(jobs.size(), "job"), fmt::join(counts, ", "))) +
         "\n" + text.jobs(jobs);
}

Result<LiveAnswer> explain_job(const LiveCall& call, const std::string& number_or_name) {
  v1::ExplainJobRequest request;
  if (const Result<std::uint64_t> id = job_id(number_or_name)) {
    request.set_id(*id);
  } else {
    const Result<v1::ListJobsResponse> jobs = jobs_named(call, number_or_name);
    if (!jobs) return tl::unexpected(jobs.error());
    request.set_id(most_questionable(*jobs).id());
  }
  auto why = call.session.client().call<v1::Explanation>("ExplainJob", request);
  if (!why) return forward_error(why);
  std::string text = terminal_text(why->text(), Newlines::kKept);
  if (!text.ends_with('\n')) text += '\n';
  return live_answer(*std::move(why), std::move(text));
}

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

}  // namespace orrery
