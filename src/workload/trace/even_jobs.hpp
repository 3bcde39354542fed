// workload/trace/even_jobs.hpp - sizes and run times of a generated trace, spread evenly over their
// distributions.
//
// A few of many jobs hold most of a trace's work, so independent draws miss a load by factors. Here
// each size has its share of the jobs, and the run times of a size are spread over as many equally
// likely intervals, one in each. Built for one trace, used by one thread. Cost: O(jobs) time and
// memory.
#pragma once

#include <cstdint>
#include <vector>

#include "base/numbers/rng.hpp"
#include "workload/trace/trace_statistics.hpp"

namespace orrery {

/// Limits beyond which no job is drawn; the statistics are cut to them.
struct JobLimits {
  std::uint32_t accelerators = 0;  ///< of a job
  double run_max_s = 0;
  double work_max_s = 0;  ///< accelerator-seconds of a job
};

/// Mean accelerator-seconds of a job. Precondition: limits above 0.
[[nodiscard]] double mean_work_within(const TraceStatistics& statistics, const JobLimits& limits);

class EvenJobs {
 public:
  EvenJobs(const TraceStatistics& statistics, const JobLimits& limits, std::uint64_t jobs, Rng rng);

  [[nodiscard]] std::uint64_t left() const { return left_; }
  /// Accelerator-seconds of the jobs that are left. O(jobs).
  [[nodiscard]] double work() const;

  /// Draws a size that has jobs left, weighted by their number. Precondition: left() > 0.
  [[nodiscard]] std::size_t pick_size();
  [[nodiscard]] std::uint32_t accelerators(std::size_t size) const {
    return sizes_[size].accelerators;
  }
  [[nodiscard]] std::size_t left_of(std::size_t size) const { return sizes_[size].runs_s.size(); }
  /// Takes one of the run times of a size. Precondition: left_of(size) > 0.
  [[nodiscard]] double take_run_s(std::size_t size);

 private:
  struct Size {
    std::uint32_t accelerators = 0;
    std::vector<double> runs_s;  ///< in random order
  };

  std::vector<Size> sizes_;
  std::uint64_t left_ = 0;
  Rng rng_;
};

}  // namespace orrery
