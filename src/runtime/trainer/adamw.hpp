// runtime/trainer/adamw.hpp - the optimiser's step on any contiguous range of the weights, and the
// learning rate of each step. Pure functions over values the caller owns.
//
// Invariant: an element's new bits depend on its own values alone, so the result does not depend on
// how the vector is cut into ranges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/trainer/parameter_layout.hpp"

namespace orrery {

struct AdamW {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;  ///< a step subtracts rate x weight_decay of each weight that decays
};

/// Elements [begin, begin + parameters.size()) of the flat vector. The two moments start as 0.
struct OptimizerRange {
  std::size_t begin = 0;
  std::span<float> parameters;
  std::span<const float> gradient;
  std::span<float> first_moment;
  std::span<float> second_moment;
};

struct OptimizerStep {
  std::int64_t number = 1;   ///< counts from 1
  double rate = 0;           ///< learning rate of this step
  float gradient_scale = 1;  ///< multiplies the gradient: clipping, and the mean over shards
};

/// AdamW (I. Loshchilov and F. Hutter, "Decoupled Weight Decay Regularization", 2019, algorithm 2),
/// the decay only where the layout says so. Precondition: all spans of the range have one size and
/// lie within the layout. O(elements + tensors).
void update(const AdamW& optimizer, const ParameterLayout& layout, const OptimizerRange& range,
            const OptimizerStep& step);

/// A rate that rises linearly to `peak` over the first `warmup` steps, then falls along a cosine to
/// `lowest` at step `steps` (I. Loshchilov and F. Hutter, "SGDR", 2017), where it stays.
struct CosineSchedule {
  double peak = 3e-4;
  double lowest = 3e-5;
  std::int64_t warmup = 0;
  std::int64_t steps = 1;
  /// `number` counts from 1.
  [[nodiscard]] double rate(std::int64_t number) const;
};

}  // namespace orrery
