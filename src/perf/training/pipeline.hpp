// perf/training/pipeline.hpp - how layers are dealt to pipeline stages.
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

}  // namespace orrery
