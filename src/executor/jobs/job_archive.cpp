#include "executor/jobs/job_archive.hpp"

#include <algorithm>

namespace orrery {

void JobArchive::take_up(const State& state) {
  for (const Job& job : state.all_jobs()) {
    if (ended(job.phase)) ended_.emplace_back(job.since, job.id);
  }
  std::sort(ended_.begin(), ended_.end());
}

Instant JobArchive::next_due(Duration retain) const {
  const Instant over = ended_.empty() ? Instant::max() : ended_.front().first + retain;
  return stayed_.empty() ? over : std::min(over, stayed_.front().first);
}

std::vector<JobId> JobArchive::take_due(const State& state, Instant now, Duration retain) {
  std::vector<JobId> due;
  const auto take = [&](Queue& queue, Duration wait) {
    for (std::size_t left = std::min(queue.size(), kJobsMax - due.size()); left > 0; --left) {
      const auto [at, job] = queue.front();
      if (at + wait > now) return;
      queue.pop_front();
      if (state.may_archive(job)) {
        due.push_back(job);
      } else if (state.has(job)) {
        on_stayed(now, job);
      }
    }
  };
  take(stayed_, {});
  take(ended_, retain);
  return due;
}

}  // namespace orrery
