#include "perf/serving/serving_apart.hpp"

#include <algorithm>
#include <cmath>

namespace orrery {

PromptInstance prompt_instance(const ServingJob& job, const ServingConstants& constants) {
  ServingJob prompts = job;
  prompts.load.output = 1;
  PromptInstance instance;
  instance.memory = serving_memory(prompts, constants.engine);
  const ServingStep step(job, constants);
  const double input = job.load.input;
  const double groups = job.plan.attention_dp;
  const double alone = std::min(input, constants.engine.chunk) * groups;
  const double held = std::max(1.0, std::floor(instance.memory.sequences)) * input;
  const double full = std::clamp(constants.engine.chunk * groups, alone, std::max(alone, held));
  instance.prompt = Seconds{step.time(prompt_load(job.load, alone)).total() *
                            std::max(1.0, input * groups / alone)};
  instance.breakdown = (input / full) * step.time(prompt_load(job.load, full));
  instance.requests_max = job.plan.pp / instance.breakdown.total();
  return instance;
}

AnswerInstance answer_instance(const ServingJob& job, const ServingConstants& constants,
                               double batch) {
  const ServingStep step(job, constants);
  AnswerInstance instance;
  instance.batch = batch;
  instance.memory = serving_memory(job, constants.engine);
  instance.breakdown = step.time(answer_load(job.load, std::max(1.0, batch) / job.plan.pp));
  instance.tpot = Seconds{instance.breakdown.total()};
  instance.requests = batch / ((job.load.output - 1) * instance.tpot.value());
  return instance;
}

Seconds cache_transfer(const ServingJob& prompts, const ServingJob& answers,
                       const ServingNetwork& network) {
  const double bytes = std::max(sequence_bytes(prompts, prompts.load.input),
                                sequence_bytes(answers, answers.load.input));
  return Seconds{point_to_point_seconds(network.between, network.domain, bytes)};
}

}  // namespace orrery
