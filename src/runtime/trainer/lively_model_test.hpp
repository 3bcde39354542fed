// runtime/trainer/lively_model_test.hpp - shared by the tests of the trainer and of the engine that
// serves its models: a small model, weights large enough that each of them matters, random tokens.
#pragma once

#include <cstdint>
#include <vector>

#include "base/numbers/distribution.hpp"
#include "base/numbers/rng.hpp"
#include "runtime/kernels/aligned_floats.hpp"
#include "runtime/trainer/parameter_layout.hpp"
#include "runtime/trainer/transformer_config.hpp"

namespace orrery {

/// Returns a small model with every special case: two blocks of attention rows, tails of vectors,
/// heads that share keys.
inline TransformerConfig small_transformer(TransformerFamily family) {
  const bool llama = family == TransformerFamily::kLlama;
  return {.family = family,
          .layers = 2,
          .width = 32,
          .heads = llama ? 4 : 2,
          .kv_heads = llama ? 2 : 0,
          .ffn = 48,
          .vocab = 19,
          .sequence = 67,
          .tied_embedding = !llama,
          .rope_base = 100};
}

/// Returns weights large enough that every part of the model matters, norms and biases included.
inline AlignedFloats lively_parameters(const ParameterLayout& layout, double deviation) {
  AlignedFloats parameters(layout.size());
  Rng rng(7);
  for (const ParameterTensor& tensor : layout.tensors()) {
    const Normal normal{.mean = tensor.mean, .deviation = deviation};
    for (std::size_t i = 0; i < tensor.size; ++i) {
      parameters[tensor.begin + i] = static_cast<float>(normal.sample(rng));
    }
  }
  return parameters;
}

/// Returns tokens of a vocabulary, the same ones for the same seed.
inline std::vector<std::int32_t> random_tokens(std::size_t count, std::int64_t vocab,
                                               std::uint64_t seed) {
  Rng rng(seed);
  std::vector<std::int32_t> tokens(count);
  for (std::int32_t& token : tokens) {
    token = static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(vocab)));
  }
  return tokens;
}

/// Returns the tokens of whole sequences, each with the one that follows its last.
inline std::vector<std::int32_t> random_tokens(const TransformerConfig& config,
                                               std::int64_t sequences) {
  return random_tokens(static_cast<std::size_t>(sequences * (config.sequence + 1)), config.vocab,
                       11);
}

}  // namespace orrery
