// executor/jobs/request_renewal.hpp - resolves jobs again after a change of the fleet, so that jobs
// that wait may use accelerators that came after they were submitted.
//
// One for a controller's life; one thread. A job keeps what its owner or an operator changed since:
// its priority, time limit and estimate. A job that the new fleet could never run keeps its
// request, and the reason is known until the job or the fleet changes.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "control/input.hpp"
#include "control/state/state.hpp"
#include "executor/jobs/job_intake.hpp"

namespace orrery {

class RequestRenewal {
 public:
  /// Adds all jobs that wait, in place of those that were added before. O(jobs).
  void add_waiting(const State& state);
  void add(JobId job) { jobs_.insert(job); }
  /// Returns why the fleet in use can never run a job, in the words that a submission of it would
  /// be refused with; none: it may run, or the fleet has not changed since the job was submitted.
  [[nodiscard]] std::optional<std::string> why_never(JobId job) const;
  [[nodiscard]] bool empty() const { return jobs_.empty(); }

  /// Takes the next jobs, at most kJobs, by id, and returns their new requests where these differ.
  /// Cost: at most kTexts texts are read and resolved, some 0.1 ms each, and that of the requests
  /// of the whole array of a text.
  [[nodiscard]] std::vector<ResolveJob> take(const State& state, JobIntake& intake, Instant now);
  static constexpr std::size_t kTexts = 128;
  static constexpr std::size_t kJobs = 1024;

 private:
  /// By id, so that jobs of an array come one after the other, in the order of its requests.
  std::set<JobId> jobs_;
  std::map<JobId, std::string> never_;  ///< why_never()
};

}  // namespace orrery
