// serving/engine_step_cost.hpp - how long a step of an inference engine takes, as a sum of terms.
//
// One model of an engine's pace for the router, the autoscaler and the twin: a step computes one
// token of each sequence that runs and parts of prompts, and takes
//
//   step + sequences * sequence + context * context_token
//        + prompt * prompt_token + prompt_context * prompt_pair     (seconds)
//
// The terms are those of a transformer on hardware whose step is bound by memory while it decodes
// and by arithmetic while it computes prompts: weights are read once a step, the cache once for
// each sequence, and attention of a prompt costs a product for each pair of tokens. Plain values;
// pure.
#pragma once

#include <cstdint>

#include "serving/replica.hpp"

namespace orrery {

/// Seconds of each term. Zero: the term is unknown or costs nothing.
struct EngineStepCost {
  double step_s = 0;           ///< of every step
  double sequence_s = 0;       ///< of each sequence that gets a token
  double context_token_s = 0;  ///< of each token that such a sequence has in the cache
  double prompt_token_s = 0;   ///< of each token of a prompt
  double prompt_pair_s = 0;    ///< of each token that a token of a prompt attends to

  friend bool operator==(const EngineStepCost&, const EngineStepCost&) = default;
};

/// What one step computes.
struct EngineStepWork {
  double sequences = 0;       ///< that get a token
  double context = 0;         ///< tokens in the cache, of all these sequences together
  double prompt = 0;          ///< tokens of prompts
  double prompt_context = 0;  ///< pairs of a token of a prompt and a token that it attends to
};

[[nodiscard]] constexpr double seconds_of(const EngineStepCost& cost, const EngineStepWork& work) {
  return cost.step_s + work.sequences * cost.sequence_s + work.context * cost.context_token_s +
         work.prompt * cost.prompt_token_s + work.prompt_context * cost.prompt_pair_s;
}

/// Whether anything is known.
[[nodiscard]] constexpr bool is_known(const EngineStepCost& cost) {
  return cost != EngineStepCost{};
}

/// Returns the cost that the pace of a warm-up shows: prompts at the measured rate, steps on the
/// line through those with one sequence and with `slots`. The context is part of these steps. Zero
/// where nothing was measured.
[[nodiscard]] EngineStepCost engine_step_cost_of(const ReplicaPace& pace, std::uint32_t slots);

}  // namespace orrery
