// serving/engine_step_fit.hpp - the terms of a step's cost from steps that were timed.
//
// Least squares of the relative error with no term below zero: each set of terms is solved for, and
// the best one without a negative term counts (five terms are 31 sets). It is then scaled so that
// all steps together take as long as they took. Pure.
// Cost: O(samples), and 31 systems of at most five equations.
#pragma once

#include <cstddef>
#include <span>

#include "base/error.hpp"
#include "serving/engine_step_cost.hpp"

namespace orrery {

/// A step and how long it took.
struct EngineStepSample {
  EngineStepWork work;
  double seconds = 0;
};

struct EngineStepFit {
  EngineStepCost cost;
  std::size_t samples = 0;
  double error = 0;  ///< mean absolute error of a step, over its length
};

/// Error (kInput): fewer than ten samples, or one that is not above zero. Steps much longer than
/// the fit says (ten times the median of measured to predicted) are left out of a second fit: they
/// are those in which the process did not run.
[[nodiscard]] Result<EngineStepFit> fit_engine_step_cost(std::span<const EngineStepSample> samples);

}  // namespace orrery
