// planner/run_estimate.hpp - the step time of a published training run, with its open choices made
// by the planner.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "perf/calibration.hpp"
#include "perf/runs/run_file.hpp"
#include "perf/training/training_step.hpp"

namespace orrery {

struct TrainingEstimate {
  ParallelPlan plan;
  StepCost cost;
  double seconds_low = 0;   ///< 10th percentile
  double seconds_high = 0;  ///< 90th percentile
  double mfu = 0;           ///< model operations over the dense 16-bit peak
  double flops = 0;         ///< model operations/s of an accelerator
  bool fits = false;
  std::vector<std::string> warnings;  ///< of the row, and assumptions
};

/// Errors: a model without layers to split, no plan that obeys what the row states, a batch that
/// does not divide. Each warning widens the interval.
[[nodiscard]] Result<TrainingEstimate> estimate(const TrainingRun& run, const Catalog& catalog,
                                                const Calibration& calibration);

/// The interval around `seconds` of predictions of this kind; `doubts` widen it.
struct Interval {
  double low = 0;
  double high = 0;
};
[[nodiscard]] Interval interval_of(const Calibration& calibration, const std::string& kind,
                                   double seconds, std::size_t doubts);

/// The interval for a plan on an accelerator: wider than interval_of() where no training run was
/// measured on it, and as wide as that of an unknown kind where none was measured on its
/// architecture.
[[nodiscard]] Interval interval_on(const Calibration& calibration, const Accelerator& accelerator,
                                   const std::string& kind, double seconds);

}  // namespace orrery
