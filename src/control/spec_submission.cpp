#include "control/spec_submission.hpp"

#include <utility>

#include "base/format/checksum.hpp"
#include "scheduler/request/job_array.hpp"

namespace orrery {
namespace {

/// Returns a number for a program name: equal for equal names, never 0.
std::uint32_t number_of(const std::string& program) {
  return static_cast<std::uint32_t>(checksum(program, 0)) | 1U;
}

}  // namespace

Submission submission_of(const JobSpec& spec, JobRequest request) {
  Submission submission;
  submission.request = std::move(request);
  submission.restart = spec.restart.policy;
  submission.restart_max = spec.restart.max;
  submission.choose_interval = !spec.checkpoint.interval;
  submission.hold = spec.hold;
  if (spec.compile) {
    const std::string& program = spec.compile->program;
    submission.prepare.program = number_of(program.empty() ? spec.name : program);
    submission.prepare.compile = Duration::from_seconds(spec.compile->time.value());
  }
  return submission;
}

std::vector<JobId>& dependencies_of(Submission& submission, AfterCondition when) {
  switch (when) {
    case AfterCondition::kAny:
      return submission.after_any;
    case AfterCondition::kNotOk:
      return submission.after_notok;
    case AfterCondition::kOk:
      break;
  }
  return submission.after;
}

std::vector<Submission> jobs_of(const JobSpec& spec, const Submission& each, ArrayId array,
                                ClassTable& classes) {
  std::vector<JobRequest> requests = requests_of(spec, each.request, array, classes);
  std::vector<Submission> jobs;
  jobs.reserve(requests.size());
  for (JobRequest& request : requests) {
    Submission& job = jobs.emplace_back(each);
    job.request = std::move(request);
    if (spec.array) job.parallel = spec.array->parallel.value_or(0);
  }
  return jobs;
}

}  // namespace orrery
