#include "verbs/jobs/job_change.hpp"

#include <fmt/format.h>

#include "base/text/count_text.hpp"
#include "base/text/terminal_text.hpp"
#include "verbs/option_text.hpp"

namespace orrery {
namespace {

template <class Request, class Response = v1::Job>
Status call_for(LiveSession& session, const char* method, Request request, std::uint64_t id) {
  request.set_request_id(session.request_id());
  request.set_id(id);
  const auto done = session.client().call<Response>(method, request);
  return done ? Status() : tl::unexpected(done.error());
}

Result<v1::Job> get_job(LiveSession& session, std::uint64_t id) {
  v1::GetJobRequest asked;
  asked.set_id(id);
  return session.client().call<v1::Job>("GetJob", asked);
}

/// Requeues a job once: an attempt that has ended meanwhile is not ended again by a repeated call.
Status requeue(LiveSession& session, std::uint64_t id, const JobChange& asked) {
  const Result<v1::Job> job = get_job(session, id);
  if (!job) return tl::unexpected(job.error());
  v1::RequeueJobRequest request;
  request.set_hold(asked.hold);
  request.set_attempt(job->attempt());
  return call_for(session, "RequeueJob", request, id);
}

Status release(LiveSession& session, std::uint64_t id) {
  const Result<v1::Job> job = get_job(session, id);
  if (!job) return tl::unexpected(job.error());
  if (Status held = check_held(*job); !held) return held;
  return call_for(session, "ReleaseJob", v1::ReleaseJobRequest(), id);
}

Status change_values(LiveSession& session, std::uint64_t id, const JobChange& asked) {
  const Result<v1::ChangeJobRequest> request = change_request(asked);
  if (!request) return tl::unexpected(request.error());
  return call_for(session, "ChangeJob", *request, id);
}

Status change_one(LiveSession& session, std::uint64_t id, const JobChange& asked) {
  switch (asked.kind) {
    case JobChangeKind::kCancel:
      return call_for<v1::CancelJobRequest, v1::CancelJobResponse>(session, "CancelJob", {}, id);
    case JobChangeKind::kHold:
      return call_for(session, "HoldJob", v1::HoldJobRequest(), id);
    case JobChangeKind::kRelease:
      return release(session, id);
    case JobChangeKind::kRequeue:
      return requeue(session, id, asked);
    case JobChangeKind::kChange:
      break;
  }
  return change_values(session, id, asked);
}

/// Fills in what is not known of a job that was named by its number. Errors: the verb would refuse
/// it.
Status look_up(LiveSession& session, JobChangeKind kind, SelectedJob& job) {
  const Result<v1::Job> found = get_job(session, job.id);
  if (!found) return tl::unexpected(found.error());
  if (found->has_ended()) {
    return infeasible(fmt::format("job {} has already ended ({})", job.id, found->phase()));
  }
  job.name = found->name();
  job.phase = found->phase();
  return kind == JobChangeKind::kRelease ? check_held(*found) : Status();
}

/// Seconds of an option; "none" is 0.
Result<double> length_option(std::string_view option, const std::string& text) {
  if (text == "none") return 0.0;
  Result<Seconds> length = quantity_option<Seconds>(option, text);
  if (!length) return forward_error(length);
  return length->value();
}

}  // namespace

JobChangeWords words_of(JobChangeKind kind) {
  switch (kind) {
    case JobChangeKind::kCancel:
      return {"cancel", "cancelled"};
    case JobChangeKind::kHold:
      return {"hold", "held"};
    case JobChangeKind::kRelease:
      return {"release", "released"};
    case JobChangeKind::kRequeue:
      return {"requeue", "requeued"};
    case JobChangeKind::kChange:
      break;
  }
  return {"change", "changed"};
}

Result<v1::ChangeJobRequest> change_request(const JobChange& asked) {
  v1::ChangeJobRequest request;
  if (!asked.priority && asked.time_limit.empty() && asked.estimate.empty()) {
    return input_error({}, "nothing to change: expected --priority, --time-limit or --estimate");
  }
  if (asked.priority) request.set_priority(*asked.priority);
  if (!asked.time_limit.empty()) {
    Result<double> limit = length_option("time-limit", asked.time_limit);
    if (!limit) return forward_error(limit);
    request.set_time_limit_s(*limit);
  }
  if (!asked.estimate.empty()) {
    Result<double> estimate = length_option("estimate", asked.estimate);
    if (!estimate) return forward_error(estimate);
    request.set_estimate_s(*estimate);
  }
  return request;
}

Status check(const JobChange& asked) {
  if (asked.kind == JobChangeKind::kChange) {
    if (Result<v1::ChangeJobRequest> request = change_request(asked); !request) {
      return forward_error(request);
    }
  }
  return check(asked.selection, words_of(asked.kind).verb);
}

Status check_held(const v1::Job& job) {
  if (!job.hold().empty() || job.has_ended()) return {};
  return infeasible(fmt::format("job {} is not held: {}", job.id(),
                                job.waiting().empty() ? "it is " + job.phase() : job.waiting()));
}

std::string JobChangeReport::add_done(const SelectedJob& job) {
  done_.push_back(fmt::format("{}", job.id));
  if (run_ == Run::kReal) return fmt::format("{} {}\n", job.text(), words_.done);
  table_.add({fmt::format("{}", job.id), job.name, job.phase});
  return "";
}

std::string JobChangeReport::add_failed(const SelectedJob& job, const Error& error) {
  failed_.push_back({{"id", fmt::format("{}", job.id)}, {"why", error.text()}});
  // The controller names the job by its number.
  const std::string name = job.name.empty() ? "" : one_line(job.name) + ": ";
  return fmt::format("orrery: {}{}\n", name, terminal_text(error.text(), Newlines::kKept));
}

std::string JobChangeReport::add_unknown(const UnknownJob& job) {
  failed_.push_back({{"name", job.name}, {"why", job.error.text()}});
  return fmt::format("orrery: {}\n", one_line(job.error.text()));
}

VerbAnswer JobChangeReport::rest() const {
  VerbAnswer answer;
  const bool dry = run_ == Run::kDry;
  const std::string key = dry ? fmt::format("would_{}", words_.verb) : std::string(words_.done);
  answer.json = {{key, done_}, {"failed", failed_}};
  if (dry) {
    answer.text =
        table_.text() + fmt::format("{} would be {}\n", counted(done_.size(), "job"), words_.done);
  } else if (done_.empty() && failed_.empty()) {
    answer.text = "no job matches\n";
  }
  return answer;
}

Status JobChangeReport::status() const {
  if (failed_.empty()) return {};
  return infeasible(fmt::format("{} of {} could not be {}", failed_.size(),
                                counted(done_.size() + failed_.size(), "job"), words_.done));
}

Result<JobChangeReport> change_jobs(LiveSession& session, const JobChange& asked,
                                    const LiveProgress& said) {
  Result<SelectedJobs> selected = selected_jobs(session, asked.selection);
  if (!selected) return forward_error(selected);
  if (selected->jobs.empty() && selected->unknown.size() == 1) {
    return tl::unexpected(selected->unknown.front().error);
  }
  using Run = JobChangeReport::Run;
  JobChangeReport report(words_of(asked.kind), asked.dry_run ? Run::kDry : Run::kReal);
  for (const UnknownJob& job : selected->unknown) said.message(report.add_unknown(job));
  for (SelectedJob& job : selected->jobs) {
    const Status changed =
        asked.dry_run ? look_up(session, asked.kind, job) : change_one(session, job.id, asked);
    if (!changed) {
      said.message(report.add_failed(job, changed.error()));
    } else if (const std::string line = report.add_done(job); !line.empty()) {
      said.text(line);
    }
  }
  return report;
}

}  // namespace orrery
