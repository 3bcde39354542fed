// tests/end_to_end/job_history.hpp - calls of concurrent clients to a controller and their answers,
// and whether one order of single steps explains them: linearizability (Herlihy and Wing, 1990).
//
// Each job is a register that only grows: it is not there, then queued, then cancelled. For such
// registers a history is linearizable exactly when no operation shows less than one that had ended
// before it began had shown or made, and none shows what no client had asked for by its end.
// Linearizability is local, so jobs are checked one by one; a list is a read of every job. No
// client may have seen a job under another number than the acknowledged one: a number that was
// shown, lost and given to another job reveals a read of what was not durable yet. Clients keep
// histories of their own, which are joined when all are done.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/time.hpp"

namespace orrery {

/// The known state of a job; later states have higher values.
enum class JobSeen : std::uint8_t { kAbsent, kQueued, kCancelled };

/// A job as shown to a reader.
struct ShownJob {
  std::uint64_t id = 0;
  JobSeen state = JobSeen::kAbsent;
};

/// The start of a call and the arrival of its answer, by one clock for all clients.
struct CallTime {
  Instant begin;
  Instant end;
};

/// Whether there are older jobs that a page does not show.
enum class PageRest : std::uint8_t { kNone, kOlder };

class JobHistory {
 public:
  /// Adds a submission or a cancel; one whose answer never came has an end of Instant::max().
  void made(const std::string& job, JobSeen state, CallTime time);
  void saw(const std::string& job, ShownJob shown, CallTime time);
  /// Adds a page of the newest jobs, by name.
  void saw_page(const std::map<std::string, ShownJob>& jobs, PageRest rest, CallTime time);
  void add(JobHistory other);

  /// Describes what no order explains. `ids` holds the id of every job that was ever acknowledged,
  /// by name. O(n log n) in operations, a page counting as one for each of `ids`.
  [[nodiscard]] std::vector<std::string> contradictions(
      const std::map<std::string, std::uint64_t>& ids) const;

 private:
  struct Operation {
    JobSeen state = JobSeen::kAbsent;
    CallTime time;
  };
  struct Register {
    /// When a client first asked for each state.
    std::array<Instant, 3> asked = {Instant(), Instant::max(), Instant::max()};
    std::vector<Operation> operations;
    std::set<std::uint64_t> ids;  ///< that readers were shown
  };
  struct Page {
    std::map<std::string, ShownJob> jobs;
    PageRest rest = PageRest::kNone;
    CallTime time;
  };

  std::map<std::string, Register> jobs_;
  std::vector<Page> pages_;
};

}  // namespace orrery
