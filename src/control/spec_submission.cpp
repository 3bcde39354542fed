#include "control/spec_submission.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/checksum.hpp"

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

std::vector<Submission> jobs_of(const JobSpec& spec, const Submission& each, ArrayId array) {
  if (!spec.array) return {each};
  std::vector<Submission> jobs(spec.array->count, each);
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    jobs[i].array = array;
    jobs[i].parallel = spec.array->parallel.value_or(0);
    jobs[i].request.name = fmt::format("{}[{}]", spec.name, i);
  }
  return jobs;
}

}  // namespace orrery
