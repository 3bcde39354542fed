// executor/job_archive.hpp - when jobs that have ended leave the state, and for where.
//
// One for a controller's life, on its loop. It is told of every end, hands out those that ended
// long enough ago, and is told what became of them. Invariant: a job is handed out again until it
// has left the state. Cost: O(jobs handed out), and what it knows is 16 bytes an ended job.
#pragma once

#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

#include "control/state.hpp"

namespace orrery {

class JobArchive {
 public:
  /// At once.
  static constexpr std::size_t kJobsMax = 1000;

  /// The ended jobs of a state that was read back.
  void take_up(const State& state);
  void on_end(Instant at, JobId job) { ended_.emplace_back(at, job); }

  /// When the next job has been over for `retain`; max: none has ended.
  [[nodiscard]] Instant next_due(Duration retain) const;
  /// Up to kJobsMax that are due at `now` and that nothing refers to; the others wait once more.
  [[nodiscard]] std::vector<JobId> take_due(const State& state, Instant now, Duration retain);

 private:
  std::deque<std::pair<Instant, JobId>> ended_;  ///< in the order of their ends
};

}  // namespace orrery
