#include "perf/machine/kernel.hpp"

#include <algorithm>
#include <cmath>

namespace orrery {
namespace {

constexpr double kTileRows = 128;
constexpr double kTileColumns = 128;

/// Part of the compute units that is busy, averaged over the waves of output tiles.
double wave_filling(const TrainingConstants& constants, const ProductSize& size) {
  if (constants.compute_units <= 0) return 1;
  const double tiles =
      std::ceil(size.m / kTileRows) * std::ceil(size.n / kTileColumns) * size.count;
  const double waves = tiles / constants.compute_units;
  const double full = waves / std::ceil(waves);
  // Split-k and stream-k schedules win part of it back.
  return 1 - constants.wave_weight * (1 - full);
}

/// Part of the output tiles that is wanted. One unit alone cuts nothing: its blocks end where the
/// matrix does.
double tile_filling(const TrainingConstants& constants, const ProductSize& size) {
  if (constants.compute_units == 1) return 1;
  return size.m / (kTileRows * std::ceil(size.m / kTileRows)) * size.n /
         (kTileColumns * std::ceil(size.n / kTileColumns));
}

}  // namespace

double product_seconds(const TrainingConstants& constants, const ProductSize& size, double rate,
                       double bytes) {
  const double flops = 2 * size.m * size.n * size.k * size.count;
  if (flops <= 0) return 0;
  const double efficiency = wave_filling(constants, size) * tile_filling(constants, size) * size.k /
                            (size.k + constants.depth_half);
  const double traffic =
      size.count * (bytes * (size.m * size.k + size.k * size.n) + 2 * size.m * size.n);
  return std::max(flops / (rate * efficiency), traffic / constants.memory_rate);
}

}  // namespace orrery
