// inference/engine/served_model_test.hpp - shared by the tests of the engine and its server: small
// models with lively weights.
#pragma once

#include <cstdint>
#include <vector>

#include "base/numbers/distribution.hpp"
#include "base/numbers/rng.hpp"
#include "inference/engine/packed_transformer.hpp"
#include "runtime/kernels/aligned_floats.hpp"
#include "runtime/trainer/generate.hpp"
#include "runtime/trainer/parameter_layout.hpp"
#include "runtime/trainer/transformer.hpp"

namespace orrery {

/// A model of bytes with weights so large that its texts do not repeat themselves.
class ServedModelForTest {
 public:
  explicit ServedModelForTest(const TransformerConfig& config)
      : layout_(config), parameters_(lively(layout_)), packed_(layout_, parameters_) {}

  static TransformerConfig tiny(TransformerFamily family) {
    const bool llama = family == TransformerFamily::kLlama;
    return {.family = family,
            .layers = 2,
            .width = 32,
            .heads = llama ? 4 : 2,
            .kv_heads = llama ? 2 : 0,
            .ffn = 48,
            .vocab = 256,
            .sequence = 100,
            .tied_embedding = !llama};
  }

  [[nodiscard]] const PackedTransformer& packed() const { return packed_; }
  [[nodiscard]] const ParameterLayout& layout() const { return layout_; }
  [[nodiscard]] const AlignedFloats& parameters() const { return parameters_; }

  /// What the trainer's own generate() returns for the prompt.
  [[nodiscard]] std::vector<std::int32_t> generated(const std::vector<std::int32_t>& prompt,
                                                    const GenerateOptions& options) const {
    TrainableTransformer model(layout_.config(), 1);
    return generate(model, parameters_, prompt, options);
  }

  static std::vector<std::int32_t> random_tokens(std::size_t count, std::uint64_t seed) {
    Rng rng(seed);
    std::vector<std::int32_t> tokens(count);
    for (std::int32_t& token : tokens) token = static_cast<std::int32_t>(rng.below(256));
    return tokens;
  }

 private:
  static AlignedFloats lively(const ParameterLayout& layout) {
    AlignedFloats parameters(layout.size());
    Rng rng(7);
    for (const ParameterTensor& tensor : layout.tensors()) {
      const Normal normal{.mean = tensor.mean, .deviation = 0.3};
      for (std::size_t i = 0; i < tensor.size; ++i) {
        parameters[tensor.begin + i] = static_cast<float>(normal.sample(rng));
      }
    }
    return parameters;
  }

  ParameterLayout layout_;
  AlignedFloats parameters_;
  PackedTransformer packed_;
};

}  // namespace orrery
