// runtime/trainer/generate.hpp - text out of a trained model, a token at a time; a look at what it
// has learnt, not a server: each token computes its whole context again.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/rng.hpp"
#include "runtime/trainer/transformer.hpp"

namespace orrery {

struct GenerateOptions {
  std::int64_t tokens = 100;  ///< to add to the prompt
  double temperature = 1;     ///< divides the scores; 0 takes the highest
  std::int64_t top_k = 0;     ///< only the so many most probable tokens; 0: all
  std::uint64_t seed = 0;
};

/// One token drawn by its score; of equal scores the lower token counts as the more probable.
/// O(vocabulary x log).
[[nodiscard]] std::int32_t sample_token(std::span<const float> logits,
                                        const GenerateOptions& options, Rng& rng);

/// What follows the prompt; of a longer text only the last `sequence` tokens are seen. The same
/// arguments give the same tokens. Precondition: the prompt is not empty.
[[nodiscard]] std::vector<std::int32_t> generate(TrainableTransformer& model,
                                                 std::span<const float> parameters,
                                                 std::span<const std::int32_t> prompt,
                                                 const GenerateOptions& options);

}  // namespace orrery
