// control/spec_submission.hpp - what a job spec asks of control, one way for whoever takes jobs:
// the daemon's intake, traces, scenarios.
#pragma once

#include <vector>

#include "control/submission.hpp"
#include "workload/job_spec.hpp"

namespace orrery {

/// A spec whose request was resolved: how it restarts and saves, what is compiled for it. Jobs it
/// comes after, and its array, are its owner's to add.
[[nodiscard]] Submission submission_of(const JobSpec& spec, JobRequest request);

/// The list of a submission for jobs that must end so.
[[nodiscard]] std::vector<JobId>& dependencies_of(Submission& submission, AfterCondition when);

/// The jobs of a spec in their order: of an array as many as it counts, "name[0]" first; else the
/// one. `array`: its id, unused where it is none.
[[nodiscard]] std::vector<Submission> jobs_of(const JobSpec& spec, const Submission& each,
                                              ArrayId array);

}  // namespace orrery
