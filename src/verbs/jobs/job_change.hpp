// verbs/jobs/job_change.hpp - one change of each selected job: cancel, hold, release, requeue, or
// other values of it; and the report of what became of each.
//
// Values of one call of a verb; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/text/text_table.hpp"
#include "orrery/v1/orrery.pb.h"
#include "verbs/cluster/live_answer.hpp"
#include "verbs/jobs/job_selection.hpp"
#include "verbs/verb_answer.hpp"

namespace orrery {

enum class JobChangeKind : std::uint8_t { kCancel, kHold, kRelease, kRequeue, kChange };

/// The words for a kind: "cancel", "cancelled".
struct JobChangeWords {
  std::string_view verb;
  std::string_view done;
};
[[nodiscard]] JobChangeWords words_of(JobChangeKind kind);

/// What is to become of which jobs, as typed.
struct JobChange {
  JobChangeKind kind = JobChangeKind::kCancel;
  JobSelection selection;
  bool dry_run = false;
  bool hold = false;                     ///< kRequeue: the jobs are held
  std::optional<std::int32_t> priority;  ///< kChange, as the two below
  std::string time_limit;                ///< "90 min", "none"; empty: it stays
  std::string estimate;                  ///< the same
};

/// Returns the new values that kChange asks for, times in seconds and 0 for "none". Errors
/// (kInput): nothing is to change; a time that is none.
[[nodiscard]] Result<v1::ChangeJobRequest> change_request(const JobChange& asked);

/// Errors (kInput): options that make no sense, whatever jobs there are.
[[nodiscard]] Status check(const JobChange& asked);

/// Errors (kInfeasible): the job waits for something else than a release, or runs.
[[nodiscard]] Status check_held(const v1::Job& job);

/// The results for the jobs of a verb; in a dry run, the expected ones.
class JobChangeReport {
 public:
  enum class Run : std::uint8_t { kReal, kDry };
  JobChangeReport(JobChangeWords words, Run run) : words_(words), run_(run) {}

  /// Returns the line to show at once: "job 7 (train) cancelled"; in a dry run none.
  [[nodiscard]] std::string add_done(const SelectedJob& job);
  /// Returns the message to show at once.
  [[nodiscard]] std::string add_failed(const SelectedJob& job, const Error& error);
  [[nodiscard]] std::string add_unknown(const UnknownJob& job);

  /// Returns what is shown at the end: in a dry run the jobs, else text only where there were none.
  [[nodiscard]] VerbAnswer rest() const;
  /// Error (kInfeasible): one or more could not be changed.
  [[nodiscard]] Status status() const;

 private:
  JobChangeWords words_;
  Run run_;
  TextTable table_{{{"ID", Align::kRight}, {"NAME"}, {"STATE"}}};
  Json done_ = Json::array();
  Json failed_ = Json::array();
};

/// Changes each selected job, says what became of it, and returns the report of all. A change is
/// durable once it was said. Errors: the only named job is unknown; those of the controller while
/// jobs are selected.
[[nodiscard]] Result<JobChangeReport> change_jobs(LiveSession& session, const JobChange& asked,
                                                  const LiveProgress& said);

}  // namespace orrery
