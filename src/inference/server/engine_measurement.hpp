// inference/server/engine_measurement.hpp - how fast an engine computes on this machine, measured
// before it serves: what a router needs to predict waiting times.
//
// Called once at the start, on the engine's thread, with an engine of its own, so that the cache
// and the counters of the served one stay as new. Takes about a second.
#pragma once

#include "base/env.hpp"
#include "inference/engine/inference_engine.hpp"

namespace orrery {

struct EngineSpeed {
  double prefill_tokens_s = 0;  ///< tokens of prompts a second, in steps of the full budget
  double step_s = 0;            ///< seconds of a step that decodes one text
  double step_full_s = 0;       ///< seconds of a step that decodes a text in each slot
};

/// Generates tokens for prompts of half the context. The seconds of a step are the median.
/// Preconditions: those of InferenceEngine.
[[nodiscard]] EngineSpeed measure_engine(const PackedTransformer& model, const Tokenizer& tokenizer,
                                         const EngineLimits& limits, const Clock& clock);

}  // namespace orrery
