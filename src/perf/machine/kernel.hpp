// perf/machine/kernel.hpp - seconds of one kernel on one rank: matrix product, attention, pass over
// memory.
#pragma once

#include "perf/training/training_constants.hpp"

namespace orrery {

/// Sizes of y[m x n] = x[m x k] W[k x n].
struct ProductSize {
  double m = 0;
  double n = 0;
  double k = 0;
  double count = 1;  ///< equal products at once (experts of a rank)
};

/// max(2mnk / rate, bytes / memory rate), formula 2: the rate falls with a short inner length k and
/// with the tiles that a last wave over the compute units leaves idle. Operands of `bytes` an
/// element, results of 2. `rate`: operations/s of a large product.
[[nodiscard]] double product_seconds(const TrainingConstants& constants, const ProductSize& size,
                                     double rate, double bytes);

/// Time of reading and writing `bytes` in element-wise kernels.
[[nodiscard]] inline double pass_seconds(const TrainingConstants& constants, double bytes) {
  return bytes / constants.memory_rate;
}

}  // namespace orrery
