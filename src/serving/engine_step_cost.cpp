#include "serving/engine_step_cost.hpp"

#include <algorithm>

namespace orrery {

EngineStepCost engine_step_cost_of(const ReplicaPace& pace, std::uint32_t slots) {
  EngineStepCost cost;
  if (pace.prefill_tokens_s > 0) cost.prompt_token_s = 1 / pace.prefill_tokens_s;
  if (slots > 1 && pace.step_full_s > pace.step_s) {
    cost.sequence_s = (pace.step_full_s - pace.step_s) / (slots - 1);
  }
  cost.step_s = std::max(pace.step_s - cost.sequence_s, 0.0);
  return cost;
}

}  // namespace orrery
