// executor/agents/recent_jobs.hpp - a value for each of the jobs that agents last reported on.
//
// Owned by the agent book. One thread.
// Invariant: there are at most `most` jobs; the one without a report for the longest time is
// dropped first. Cost of a call: O(log jobs).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "scheduler/device_history.hpp"

namespace orrery {

template <class Value>
class RecentJobs {
 public:
  /// Precondition: most > 0.
  explicit RecentJobs(std::size_t most) : most_(most) {}

  /// Notes a report on a job and returns its value, a new one if it has none. Valid until the next
  /// call.
  Value& reported(JobId job) {
    Entry& entry = entries_[job];
    order_.erase(entry.report);
    entry.report = ++reports_;
    order_.emplace(entry.report, job);
    if (entries_.size() > most_) {
      entries_.erase(order_.begin()->second);
      order_.erase(order_.begin());
    }
    return entry.value;
  }
  /// Returns the value of a job; nullptr: it has none.
  [[nodiscard]] const Value* find(JobId job) const {
    const auto found = entries_.find(job);
    return found == entries_.end() ? nullptr : &found->second.value;
  }
  void clear() {
    entries_.clear();
    order_.clear();
  }

 private:
  struct Entry {
    Value value;
    std::uint64_t report = 0;  ///< number of the job's newest report
  };

  std::size_t most_;
  std::uint64_t reports_ = 0;
  std::map<JobId, Entry> entries_;
  std::map<std::uint64_t, JobId> order_;  ///< jobs by the number of their newest report
};

}  // namespace orrery
