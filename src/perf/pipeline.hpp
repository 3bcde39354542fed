// perf/pipeline.hpp - how layers are dealt to pipeline stages, and how long a schedule of
// micro-batches over them takes.
#pragma once

#include <cstdint>
#include <span>

namespace orrery {

/// Layers of the stages: `most` on all stages but the first and the last, which hold fewer where
/// `layers` is no multiple of the stages (they also hold embedding and head).
struct StageLayers {
  double most = 0;
  double first = 0;
  double last = 0;
};

/// Deals `layers` over `stages`: ceil(layers / stages) each, and what is too much is taken from the
/// last and the first stage in turn (Llama 3: 126 layers on 16 stages are 7 + 14 x 8 + 7).
[[nodiscard]] StageLayers deal_layers(double layers, std::uint32_t stages);

struct StageShape {
  std::uint32_t stages = 1;
  std::uint32_t chunks = 1;  ///< virtual stages of each
  double tail = 0;           ///< what the last stage has to do beside layers, in layers
};

/// Deals layers over stages with virtual stages, as layouts are written by hand: where more than a
/// layer at either end is to spare, the last stage gives as many as its tail takes (DeepSeek-V3: 61
/// layers on 16 stages are 15 x 4 + 1 with the prediction module and two heads).
[[nodiscard]] StageLayers deal_layers(double layers, const StageShape& shape);

/// Seconds of `micro_batches` through stages whose forward and backward of one micro-batch together
/// take `stage_seconds`, one-forward-one-backward with `chunks` virtual stages a rank: the slowest
/// stage works on every micro-batch, the others once on the critical path. Exact for equal stages,
/// (m + (p - 1) / v) t (Narayanan et al. 2021), and where the last stage is the slowest; else an
/// upper bound, because stages behind the slowest catch up. O(stages).
[[nodiscard]] double pipeline_seconds(std::span<const double> stage_seconds, double micro_batches,
                                      double chunks);

/// Computes the seconds by the recurrence of the schedule itself, event by event, without chunks,
/// from forward seconds and backward seconds of every stage. For tests and reports. O(stages x
/// micro_batches).
[[nodiscard]] double one_forward_one_backward_seconds(std::span<const double> forward,
                                                      std::span<const double> backward,
                                                      std::uint32_t micro_batches);

}  // namespace orrery
