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

/// A pass in which `sequences` each generate a token, and one that reads `tokens` of prompts.
[[nodiscard]] StepLoad answer_load(const ServingLoad& load, double sequences);
[[nodiscard]] StepLoad prompt_load(const ServingLoad& load, double tokens);

/// Part of the time for which a queue of prompts keeps its server busy at most.
inline constexpr double kBusyMax = 0.95;

/// Prompts that are read before one that arrives: those of an open queue whose server is `busy` for
/// that part of the time, and those of the part of `running` requests that ended, and so asks
/// again, at one time.
[[nodiscard]] double prompts_ahead(const EngineConstants& engine, double busy, double running);

[[nodiscard]] ServingPrediction predict_serving(const ServingJob& job,
                                                const ServingConstants& constants);

}  // namespace orrery
