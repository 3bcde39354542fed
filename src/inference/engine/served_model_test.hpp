// inference/engine/served_model_test.hpp - shared by the tests of the engine and its server: small
// models with lively weights.
#pragma once

#include <cstdint>
#include <vector>

#include "inference/engine/packed_transformer.hpp"
#include "runtime/kernels/aligned_floats.hpp"
#include "runtime/trainer/generate.hpp"
#include "runtime/trainer/lively_model_test.hpp"
#include "runtime/trainer/parameter_layout.hpp"
#include "runtime/trainer/transformer.hpp"

namespace orrery {

/// A model of bytes with weights so large that its texts do not repeat themselves.
class ServedModelForTest {
 public:
  explicit ServedModelForTest(const TransformerConfig& config, const ModelVariant& variant = {})
      : layout_(config),
        parameters_(lively_parameters(layout_, 0.3)),
        packed_(layout_, parameters_, variant) {}

  static TransformerConfig tiny(TransformerFamily family) {
    TransformerConfig config = small_transformer(family);
    config.vocab = 256;
    config.sequence = 100;
    config.rope_base = TransformerConfig{}.rope_base;
    return config;
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
    return orrery::random_tokens(count, 256, seed);
  }

 private:
  ParameterLayout layout_;
  AlignedFloats parameters_;
  PackedTransformer packed_;
};

}  // namespace orrery
