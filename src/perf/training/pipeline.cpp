#include "perf/training/pipeline.hpp"

#include <algorithm>
#include <cmath>

namespace orrery {

StageLayers deal_layers(double layers, std::uint32_t stages) {
  const double most = std::ceil(layers / stages);
  const double spare = most * stages - layers;
  if (stages == 1) return {.most = most, .first = most, .last = most};
  // A stage gives at most all it has; what is left over thins the middle, which `most` bounds.
  const double last = std::max(0.0, most - std::ceil(spare / 2));
  const double first = std::max(0.0, most - std::floor(spare / 2));
  return {.most = most, .first = first, .last = last};
}

StageLayers deal_layers(double layers, const StageShape& shape) {
  if (shape.stages == 1) return deal_layers(layers, 1);
  const double chunks = double{1} * shape.stages * shape.chunks;
  const double each = std::ceil(layers / chunks);
  const double spare = each * chunks - layers;
  const double most = each * shape.chunks;
  double last = std::ceil(spare / 2);
  if (spare > 2) last = std::min({spare, each, std::ceil(shape.tail)});
  const double first = std::min(std::floor(spare / 2), spare - last);
  return {.most = most, .first = std::max(0.0, most - first), .last = std::max(0.0, most - last)};
}

}  // namespace orrery
