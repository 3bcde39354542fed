#include "executor/jobs/request_renewal.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "control/codec/codec.hpp"

namespace orrery {
namespace {

bool waits(const State& state, JobId id) {
  if (!state.has(id)) return false;
  const Job& job = state.job(id);
  return !ended(job.phase) && !holds_devices(job.phase) && !job.spec.empty();
}

/// Returns the request of a job among those of its text; nullptr: it has none. Replicas of a role
/// are alike, and there may be more than the text says. Of an array, some jobs may have ended, or
/// have devices: `next` is the first request that may be that of the next job.
const JobRequest* request_of(const JobRequest& former, const std::vector<JobRequest>& requests,
                             std::size_t& next) {
  if (former.kind == JobKind::kServe && former.array.valid()) {
    const auto found = std::ranges::find_if(requests, [&](const JobRequest& each) {
      return each.roles.front().name == former.roles.front().name;
    });
    return found == requests.end() ? nullptr : &*found;
  }
  while (next < requests.size() && requests[next].name != former.name) ++next;
  return next == requests.size() ? nullptr : &requests[next];
}

}  // namespace

void RequestRenewal::add_waiting(const State& state) {
  jobs_.clear();
  never_.clear();
  for (const Job& job : state.all_jobs()) {
    if (waits(state, job.id)) jobs_.insert(jobs_.end(), job.id);
  }
}

std::optional<std::string> RequestRenewal::why_never(JobId job) const {
  const auto found = never_.find(job);
  return found == never_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<ResolveJob> RequestRenewal::take(const State& state, JobIntake& intake, Instant now) {
  std::vector<ResolveJob> renewed;
  const Job* read = nullptr;  // the job whose text `requests` come from
  Result<std::vector<JobRequest>> requests;
  std::size_t next = 0;  // the first of `requests` that may be that of the next job
  std::size_t texts = 0;
  for (std::size_t taken = 0; !jobs_.empty() && taken < kJobs; ++taken) {
    const JobId id = *jobs_.begin();
    if (!waits(state, id)) {
      jobs_.erase(jobs_.begin());
      continue;
    }
    const Job& job = state.job(id);
    const JobRequest& former = job.submission->request;
    // The jobs of an array share their text, but for those of a service that is updated.
    const bool same_text = read != nullptr && former.array.valid() &&
                           former.array == read->submission->request.array &&
                           job.spec == read->spec;
    if (!same_text) {
      if (texts == kTexts) break;
      ++texts;
      requests = intake.resolve_again(job, state, now);
      next = 0;
      read = &job;
    }
    jobs_.erase(jobs_.begin());
    never_.erase(id);
    if (!requests) {
      const Error& why = requests.error();
      if (why.kind == ErrorKind::kInfeasible) never_.emplace(id, why.message);
      continue;
    }
    const JobRequest* now_asked = request_of(former, *requests, next);
    if (now_asked == nullptr) continue;
    JobRequest request = *now_asked;
    request.name = former.name;
    request.priority = former.priority;
    request.time_limit = former.time_limit;
    request.estimate = former.estimate;
    if (request.class_id.valid()) request.class_id = intake.class_of(request);
    if (!same_fields(former, request)) renewed.push_back({id, std::move(request)});
  }
  return renewed;
}

}  // namespace orrery
