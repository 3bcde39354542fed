// verbs/jobs/job_selection.hpp - the jobs that a verb acts on: by number, by name, by array, or
// all that a filter matches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "verbs/cluster/live_session.hpp"

namespace orrery {

/// The selection as typed.
struct JobSelection {
  std::vector<std::string> jobs;
  std::string name;
  std::string tenant;
  std::string user;
  std::string phase;

  [[nodiscard]] bool filtered() const {
    return !name.empty() || !tenant.empty() || !user.empty() || !phase.empty();
  }
};

struct SelectedJob {
  std::uint64_t id = 0;
  std::string name;  ///< empty: it was selected by its number
  std::string phase;

  /// Returns "job 7 (train)".
  [[nodiscard]] std::string text() const;
};

/// Errors: no jobs and no filter, both, or a state in which no job can be. `verb`: "cancel".
[[nodiscard]] Status check(const JobSelection& selection, std::string_view verb);

struct UnknownJob {
  std::string name;
  Error error;
};

struct SelectedJobs {
  std::vector<SelectedJob> jobs;    ///< in the order in which they were named, or ascending; each
                                    ///< once
  std::vector<UnknownJob> unknown;  ///< names without a job that has not ended
};

/// Resolves a selection. Numbers are not looked up.
[[nodiscard]] Result<SelectedJobs> selected_jobs(LiveSession& session,
                                                 const JobSelection& selection);

}  // namespace orrery
