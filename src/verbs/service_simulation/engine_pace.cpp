#include "verbs/service_simulation/engine_pace.hpp"

#include <algorithm>
#include <vector>

#include "perf/serving/serving_memory.hpp"
#include "perf/serving/serving_step.hpp"

namespace orrery {
namespace {

/// A cache of more tokens has more blocks than a replica can be modelled with.
constexpr double kKvTokensMax = 1e9;

/// Predicts steps of the sizes that an engine has under load.
std::vector<EngineStepSample> predicted_steps(const ServingStep& step, double chunk) {
  std::vector<EngineStepSample> samples;
  for (const double sequences : {0.0, 1.0, 4.0, 16.0, 48.0, 96.0, 192.0}) {
    for (const double context : {200.0, 1000.0, 4000.0, 16000.0}) {
      for (const double prompt : {0.0, 128.0, 512.0, chunk / 2, chunk}) {
        if (sequences + prompt == 0 || (sequences == 0 && context > 16000)) continue;
        const double seen = prompt > 0 ? context / 2 + prompt / 2 : 0;
        const double seconds = step.time({.sequences = sequences,
                                          .context = context,
                                          .prompts = prompt,
                                          .piece = prompt,
                                          .seen = seen,
                                          .finished = prompt > 0 ? 1.0 : 0.0})
                                   .total();
        samples.push_back({.work = {.sequences = sequences,
                                    .context = sequences * context,
                                    .prompt = prompt,
                                    .prompt_context = prompt * seen},
                           .seconds = seconds});
      }
    }
  }
  return samples;
}

}  // namespace

Result<EnginePace> engine_pace(const ServingJob& job, const ServingConstants& constants) {
  const ServingMemory memory = serving_memory(job, constants.engine);
  if (!memory.fits()) return infeasible("the model does not fit");
  EnginePace pace;
  pace.request_s = constants.engine.first;
  pace.step_tokens = static_cast<std::uint32_t>(constants.engine.chunk);
  pace.sequences_max = static_cast<std::uint32_t>(constants.engine.sequences_max);
  constexpr double kSpan = 1024;  // tokens, over which bytes of a token are taken
  const double left = memory.available - memory.weights - memory.activations;
  pace.kv_tokens = static_cast<std::uint64_t>(
      std::min(left / (sequence_bytes(job, kSpan) / kSpan), kKvTokensMax));
  const ServingStep step(job, constants);
  Result<EngineStepFit> fit = fit_engine_step_cost(predicted_steps(step, constants.engine.chunk));
  if (!fit) return forward_error(fit);
  pace.fit = *fit;
  return pace;
}

}  // namespace orrery
