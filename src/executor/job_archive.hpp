// executor/job_archive.hpp - when jobs that have ended leave the state, and for where.
//
// One for a controller's life, on its loop. It is told of every end, hands out those that ended
// long enough ago, and is told which stayed: these are asked for again a minute later. Invariant: a
// job is handed out again until it has left the state. Cost: O(jobs handed out), and what it knows
// is 16 bytes an ended job.
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
  /// It was handed out, and is in the state still.
  void on_stayed(Instant now, JobId job) { stayed_.emplace_back(now + kAgain, job); }

  /// When there is somebody to hand out; max: not as things are.
  [[nodiscard]] Instant next_due(Duration retain) const;
  /// Up to kJobsMax that have been over for `retain` and that nothing refers to; the others stay.
  [[nodiscard]] std::vector<JobId> take_due(const State& state, Instant now, Duration retain);

 private:
  using Queue = std::deque<std::pair<Instant, JobId>>;
  static constexpr Duration kAgain = Duration::minutes(1);

  Queue ended_;   ///< in the order of their ends
  Queue stayed_;  ///< by when they are asked for again
};

}  // namespace orrery
