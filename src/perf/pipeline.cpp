#include "perf/pipeline.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

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

double pipeline_seconds(std::span<const double> stage_seconds, double micro_batches,
                        double chunks) {
  double slowest = 0;
  double sum = 0;
  for (const double seconds : stage_seconds) {
    slowest = std::max(slowest, seconds);
    sum += seconds;
  }
  return micro_batches * slowest + (sum - slowest) / chunks;
}

double one_forward_one_backward_seconds(std::span<const double> forward,
                                        std::span<const double> backward,
                                        std::uint32_t micro_batches) {
  const std::size_t stages = forward.size();
  std::vector<double> free(stages, 0);
  // Ends of the forward and backward passes of each micro-batch, by stage.
  std::vector<std::vector<double>> forward_end(stages, std::vector<double>(micro_batches, -1));
  auto backward_end = forward_end;
  std::vector<std::uint32_t> forwards(stages, 0);
  std::vector<std::uint32_t> backwards(stages, 0);
  // Each stage runs its own fixed order; a stage whose next input is missing waits for the others.
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < stages; ++s) {
      const auto warm_up = static_cast<std::uint32_t>(stages - s);
      for (;;) {
        const bool forward_next =
            forwards[s] < micro_batches && forwards[s] < warm_up + backwards[s];
        if (forward_next) {
          const std::uint32_t m = forwards[s];
          const double ready = s == 0 ? 0 : forward_end[s - 1][m];
          if (ready < 0) break;
          forward_end[s][m] = free[s] = std::max(free[s], ready) + forward[s];
          ++forwards[s];
        } else if (backwards[s] < forwards[s]) {
          const std::uint32_t m = backwards[s];
          const double ready = s + 1 == stages ? forward_end[s][m] : backward_end[s + 1][m];
          if (ready < 0) break;
          backward_end[s][m] = free[s] = std::max(free[s], ready) + backward[s];
          ++backwards[s];
        } else {
          break;
        }
        moved = true;
      }
    }
  }
  return *std::max_element(free.begin(), free.end());
}

}  // namespace orrery
