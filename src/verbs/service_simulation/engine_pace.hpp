// verbs/service_simulation/engine_pace.hpp - how an instance of a planned service steps, and what
// its cache holds, by the cost model of serving.
//
// Steps of many sizes are predicted (perf/serving/serving_step.hpp) and the terms of
// EngineStepCost fitted to them. Cost: some hundred predictions.
#pragma once

#include <cstdint>

#include "perf/serving/serving_constants.hpp"
#include "perf/serving/serving_job.hpp"
#include "serving/engine_step_fit.hpp"

namespace orrery {

struct EnginePace {
  EngineStepFit fit;
  double request_s = 0;             ///< of a request outside of steps
  std::uint64_t kv_tokens = 0;      ///< that the cache holds
  std::uint32_t step_tokens = 0;    ///< most tokens of a step
  std::uint32_t sequences_max = 0;  ///< 0: no limit is known
};

/// Errors: the model does not fit the accelerators of an instance, or its steps have no finite
/// prediction.
[[nodiscard]] Result<EnginePace> engine_pace(const ServingJob& job,
                                             const ServingConstants& constants);

}  // namespace orrery
