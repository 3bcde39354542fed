// control/spec_submission.hpp - translates a job spec into submissions, for every source of jobs:
// the daemon's intake, traces, scenarios.
#pragma once

#include <vector>

#include "control/submission.hpp"
#include "scheduler/plans/class_table.hpp"
#include "workload/job_spec.hpp"

namespace orrery {

/// Returns the submission of a spec with a resolved request: how it restarts, how it saves, what is
/// compiled for it. The caller adds dependencies and the array.
[[nodiscard]] Submission submission_of(const JobSpec& spec, JobRequest request);

/// Returns the list of a submission for jobs that must end in the way `when` says.
[[nodiscard]] std::vector<JobId>& dependencies_of(Submission& submission, AfterCondition when);

/// Returns the jobs of a spec in order, "name[0]" first: those of its array, the replicas of a
/// service, or one (requests_of in scheduler/request/job_array.hpp). `array` is unused if there is
/// one.
[[nodiscard]] std::vector<Submission> jobs_of(const JobSpec& spec, const Submission& each,
                                              ArrayId array, ClassTable& classes);

}  // namespace orrery
