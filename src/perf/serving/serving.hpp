// perf/serving/serving.hpp - throughput, latency and memory of an inference service.
//
// prediction of a job: the batch that load, scheduler and memory allow, the time of a decode step
// and of the prompts' passes at that batch, and what follows from them. Pure.
// Invariant: nothing is faster than the device's rates and bandwidth permit.
// Cost: a few dozen evaluations of a pass.
#pragma once

#include "base/quantity.hpp"
#include "perf/calibration.hpp"
#include "perf/serving/serving_job.hpp"
#include "perf/serving/serving_memory.hpp"
#include "perf/serving/serving_step.hpp"

namespace orrery {

/// The prediction for all instances together; times are means over requests.
struct ServingPrediction {
  TokensPerSecond tokens_total;  ///< read and generated
  TokensPerSecond output_tokens;
  double requests = 0;  ///< a second
  Seconds ttft;         ///< until a request's first token
  Seconds tpot;         ///< between its following ones
  Seconds e2e;
  double batch = 0;  ///< sequences running, an instance
  ServingMemory memory;
  bool fits = true;
  StepTime breakdown;  ///< seconds a generated token of one sequence takes, prompts included
};

[[nodiscard]] ServingPrediction predict_serving(const ServingJob& job,
                                                const ServingConstants& constants);

}  // namespace orrery
