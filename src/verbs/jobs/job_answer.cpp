#include "verbs/jobs/job_answer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
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

/// Returns the tables of a service that the jobs are the replicas of; "": they are of none.
std::string service_of(const LiveCall& call, const v1::ListJobsResponse& jobs) {
  if (jobs.jobs(0).kind() != "Serve") return "";
  v1::GetJobRequest request;
  request.set_id(jobs.jobs(0).id());
  const Result<v1::Job> job = call.session.client().call<v1::Job>("GetJob", request);
  if (!job || !job->has_service()) return "";
  return "\n" + service_text(call.text, job->service());
}

Result<LiveAnswer> answer_named(const LiveCall& call, const std::string& name) {
  v1::ListJobsRequest request;
  request.set_all(true);
  request.set_name(name);
  Result<v1::ListJobsResponse> jobs = list_jobs(call.session, request);
  if (jobs && jobs->jobs().empty()) {
    request.set_name(name + "[*]");
    jobs = list_jobs(call.session, request);
  }
  if (!jobs) return forward_error(jobs);
  if (jobs->jobs().empty()) {
    return input_error({},
                       fmt::format("there is no job \"{}\": expected a number or a name; `orrery "
                                   "jobs --all` lists them",
                                   name));
  }
  if (jobs->jobs_size() == 1) return answer_numbered(call, jobs->jobs(0).id());
  std::string text = job_group_text(call.text, rows_of(*jobs)) + service_of(call, *jobs);
  return live_answer(*std::move(jobs), std::move(text));
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

Result<LiveAnswer> explain_job(const LiveCall& call, std::uint64_t id) {
  v1::ExplainJobRequest request;
  request.set_id(id);
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
