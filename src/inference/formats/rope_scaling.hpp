// inference/formats/rope_scaling.hpp - how models for long contexts slow down their rotary
// positions.
//
// Plain values and pure functions. The formulas are those of Hugging Face's transformers
// (modeling_rope_utils.py); "llama3" is A. Dubey et al., "The Llama 3 Herd of Models", 2024.
#pragma once

#include <cstdint>
#include <vector>

namespace orrery {

/// The rotary positions of a head.
struct RopePairs {
  std::int64_t half = 0;  ///< pairs: half of a head's width
  double base = 10'000;   ///< pair i turns by base^(-i / half) a position
};

/// All pairs turn 1 / factor as fast. Precondition: factor >= 1.
[[nodiscard]] std::vector<double> linear_rope_factors(const RopePairs& pairs, double factor);

struct Llama3Rope {
  double factor = 8;
  double low_frequency_factor = 1;
  double high_frequency_factor = 4;
  double original_context = 8192;  ///< tokens
};
/// Pairs that turn more than `high` times within the original context keep their pace, those that
/// turn less than `low` times are slowed by the factor, those between in part. Preconditions:
/// factor >= 1, low < high.
[[nodiscard]] std::vector<double> llama3_rope_factors(const RopePairs& pairs,
                                                      const Llama3Rope& rope);

}  // namespace orrery
