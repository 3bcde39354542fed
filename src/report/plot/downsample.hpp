// report/plot/downsample.hpp - what a plot keeps of series that are longer than it is wide.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace orrery {

/// Returns the ascending indices, at most `points_max` of them, of the samples to draw of series
/// that share their times: the first, the last, and the least and the greatest of every series in
/// each of many equal runs of samples, so that no extreme is lost while points_max >= 2 x series +
/// 2. Returns all indices when they fit. A value that is not finite is no extreme; a run of nothing
/// else keeps one sample, so that the gap stays. Precondition: equal lengths; points_max >= 4.
/// O(samples x series).
[[nodiscard]] std::vector<std::size_t> kept_samples(std::span<const std::span<const double>> series,
                                                    std::size_t points_max);

/// Equal runs of samples: the position, mean and extremes of each. NaN where a run has no finite
/// value.
struct Envelope {
  std::vector<double> x;
  std::vector<double> mean;
  std::vector<double> low;
  std::vector<double> high;
};

/// Precondition: equal lengths, ascending x; 1 <= runs <= samples. O(samples).
[[nodiscard]] Envelope envelope_of(std::span<const double> x, std::span<const double> y,
                                   std::size_t runs);

}  // namespace orrery
