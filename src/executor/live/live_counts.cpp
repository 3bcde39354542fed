#include "executor/live/live_counts.hpp"

#include <algorithm>
#include <numeric>

namespace orrery {

void TimeHistogram::observe(Duration time) {
  const double seconds = time.count_seconds();
  const auto at = std::lower_bound(bounds_.begin(), bounds_.end(), seconds);
  ++counts_[static_cast<std::size_t>(at - bounds_.begin())];
  sum_ += seconds;
}

std::uint64_t TimeHistogram::up_to(std::size_t at) const {
  const auto end = counts_.begin() + static_cast<std::ptrdiff_t>(at) + 1;
  return std::accumulate(counts_.begin(), end, std::uint64_t{0});
}

void LiveCounts::note(const Event& event, const State& state) {
  const auto* start = std::get_if<JobStarted>(&event);
  if (start == nullptr || start->attempt != 1) return;
  const Job& job = state.job(start->job);
  queue_wait.observe(job.since - job.submitted);
}

}  // namespace orrery
