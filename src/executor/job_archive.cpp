#include "executor/job_archive.hpp"

#include <algorithm>

namespace orrery {

void JobArchive::take_up(const State& state) {
  for (const Job& job : state.all_jobs()) {
    if (ended(job.phase)) ended_.emplace_back(job.since, job.id);
  }
  std::sort(ended_.begin(), ended_.end());
}

Instant JobArchive::next_due(Duration retain) const {
  return ended_.empty() ? Instant::max() : ended_.front().first + retain;
}

std::vector<JobId> JobArchive::take_due(const State& state, Instant now, Duration retain) {
  std::vector<JobId> due;
  for (std::size_t left = std::min(ended_.size(), kJobsMax); left > 0; --left) {
    const auto [at, job] = ended_.front();
    if (at + retain > now) break;
    ended_.pop_front();
    if (!state.has(job)) continue;
    if (state.may_archive(job)) {
      due.push_back(job);
    } else {
      ended_.emplace_back(now, job);
    }
  }
  return due;
}

}  // namespace orrery
