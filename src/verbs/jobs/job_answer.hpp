// verbs/jobs/job_answer.hpp - jobs of a running cluster: lists of them, one of them, and why it
// waits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/v1/orrery.pb.h"
#include "verbs/cluster/live_answer.hpp"

namespace orrery {

/// Which jobs are listed; an empty text stands for any.
struct JobFilter {
  std::string tenant;
  std::string phase;
  std::string name;  ///< a pattern: * any characters, ? one
  std::string user;
  bool all = false;  ///< those that have ended, too
};

/// Returns the request for them. A state is asked of all jobs, since it may be that of an end.
[[nodiscard]] v1::ListJobsRequest request_of(const JobFilter& filter);

/// Lists jobs. Errors: those of the controller.
[[nodiscard]] Result<LiveAnswer> answer_jobs(const LiveCall& call, const JobFilter& filter);

/// Shows a job by its number, or by its name, ended ones included; of an array or a service all of
/// its jobs. Errors (kInput): there is none; those of the controller.
[[nodiscard]] Result<LiveAnswer> answer_job(const LiveCall& call,
                                            const std::string& number_or_name);

/// Returns "16 jobs: 1 queued, 15 running" and the jobs.
[[nodiscard]] std::string job_group_text(const LiveText& text, const std::vector<v1::Job>& jobs);

/// Says why a job waits or runs where it does; of several with the name one that waits. Errors
/// (kInput): there is none; those of the controller.
[[nodiscard]] Result<LiveAnswer> explain_job(const LiveCall& call,
                                             const std::string& number_or_name);

/// Reads numbers of jobs. Errors (kInput): the first that is none.
[[nodiscard]] Result<std::vector<std::uint64_t>> job_ids(const std::vector<std::string>& texts);

}  // namespace orrery
