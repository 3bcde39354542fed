// runtime/trainer/generate.hpp - generates text from a trained model, a token at a time; a look at
// what it has learnt, not a server: each token recomputes its whole context.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/numbers/rng.hpp"
#include "runtime/trainer/transformer.hpp"

namespace orrery {

struct GenerateOptions {
  std::int64_t tokens = 100;  ///< to add to the prompt
  double temperature = 1;     ///< divides the scores; 0 takes the highest
  std::int64_t top_k = 0;     ///< draw only from this many most probable tokens; 0: all
  double top_p = 1;  ///< draw only from the fewest most probable tokens that have this probability
  std::uint64_t seed = 0;
};

/// Draws one token by its score; of equal scores the lower token counts as more probable. With
/// top_k, top_p counts among the tokens that it leaves. A temperature of 0 draws nothing from
/// `rng`. Where scores are NaNs, it returns some token. O(vocabulary), and sorting the tokens that
/// are drawn from where top_k or top_p limits them.
[[nodiscard]] std::int32_t sample_token(std::span<const float> logits,
                                        const GenerateOptions& options, Rng& rng);

/// Returns the tokens that follow the prompt; the model sees only the last `sequence` tokens. The
/// same arguments give the same tokens. Precondition: the prompt is not empty.
[[nodiscard]] std::vector<std::int32_t> generate(TrainableTransformer& model,
                                                 std::span<const float> parameters,
                                                 std::span<const std::int32_t> prompt,
                                                 const GenerateOptions& options);

}  // namespace orrery
