// executor/jobs/job_archive.hpp - decides when jobs that have ended leave the state for the
// archive.
//
// One for a controller's life, on its loop. It receives every end, hands out the jobs that ended
// long enough ago, and receives those that stayed in the state; it hands these out again a minute
// later. Invariant: a job is handed out again until it has left the state. Cost: O(jobs handed
// out), and 16 bytes of memory for an ended job.
#pragma once

#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

#include "control/state/state.hpp"

namespace orrery {

class JobArchive {
 public:
  /// The most jobs that are handed out at once.
  static constexpr std::size_t kJobsMax = 1000;

  /// Adds the ended jobs of a restored state.
  void take_up(const State& state);
  void on_end(Instant at, JobId job) { ended_.emplace_back(at, job); }
  /// The job was handed out, but is still in the state.
  void on_stayed(Instant now, JobId job) { stayed_.emplace_back(now + kAgain, job); }

  /// Returns when a job is to be handed out; max: none is as things are.
  [[nodiscard]] Instant next_due(Duration retain) const;
  /// Returns up to kJobsMax jobs that ended at least `retain` ago and that nothing refers to; the
  /// others stay.
  [[nodiscard]] std::vector<JobId> take_due(const State& state, Instant now, Duration retain);

 private:
  using Queue = std::deque<std::pair<Instant, JobId>>;
  static constexpr Duration kAgain = Duration::minutes(1);

  Queue ended_;   ///< in the order in which they ended
  Queue stayed_;  ///< in the order in which they are handed out again
};

}  // namespace orrery
