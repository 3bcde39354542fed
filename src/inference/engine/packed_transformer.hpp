// inference/engine/packed_transformer.hpp - a GPT or Llama as the engine computes with it.
//
// Made once from the parameters of a checkpoint or a file, which it copies and does not need
// afterwards; immutable, safe to use from every thread. Memory: that of the weights in their
// format.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "inference/engine/packed_linear.hpp"
#include "runtime/kernels/aligned_floats.hpp"
#include "runtime/kernels/kernels.hpp"
#include "runtime/kernels/rotation.hpp"
#include "runtime/trainer/parameter_layout.hpp"
#include "runtime/trainer/transformer_config.hpp"

namespace orrery {

/// Weights of a norm; an RMSNorm has no bias.
struct PackedNorm {
  AlignedFloats weight;
  AlignedFloats bias;
};

struct PackedBlock {
  PackedNorm attention_norm;
  PackedLinear qkv;
  PackedLinear attention_out;
  PackedNorm ffn_norm;
  PackedLinear up;
  PackedLinear down;
};

/// In what a model differs from those that orrery-train trains.
struct ModelVariant {
  float norm_epsilon = NormForward{}.epsilon;
  /// Factor of the angle of each rotary pair, in (0, 1]; empty: all are 1.
  std::vector<double> rotary_factors;
  std::int64_t context_max = 0;  ///< tokens of the longest text; 0: as many as the model has
  WeightFormat weights = WeightFormat::kF32;  ///< of the products; embeddings and norms are f32
};

class PackedTransformer {
 public:
  /// Preconditions: check_servable(layout.config()) is fine, the layout is of a whole model, the
  /// parameters are its, and the variant has no factors or one for each pair of a head.
  PackedTransformer(const ParameterLayout& layout, std::span<const float> parameters,
                    const ModelVariant& variant = {});

  [[nodiscard]] const TransformerConfig& config() const { return config_; }
  [[nodiscard]] std::span<const PackedBlock> blocks() const { return blocks_; }
  [[nodiscard]] const PackedNorm& final_norm() const { return final_norm_; }
  [[nodiscard]] const PackedLinear& head() const { return head_; }
  /// Returns the row of the embedding. Precondition: 0 <= token < vocab.
  [[nodiscard]] const float* token_row(std::int32_t token) const {
    return token_embedding_.data() + token * config_.width;
  }
  /// Returns the row of the learned position, or nullptr in a model that has none.
  [[nodiscard]] const float* position_row(std::int64_t position) const {
    return position_embedding_.empty() ? nullptr
                                       : position_embedding_.data() + position * config_.width;
  }
  /// Cosines and sines of the rotary positions; empty in a model that has none.
  [[nodiscard]] const RotaryTable& rotary() const { return rotary_; }
  /// What norms add to the variance of a row.
  [[nodiscard]] float norm_epsilon() const { return norm_epsilon_; }
  /// Number of trained weights.
  [[nodiscard]] std::size_t weights() const { return weights_; }
  /// In which the weights of its products are kept.
  [[nodiscard]] WeightFormat format() const { return head_.format(); }

 private:
  TransformerConfig config_;
  AlignedFloats token_embedding_;
  AlignedFloats position_embedding_;
  std::vector<PackedBlock> blocks_;
  PackedNorm final_norm_;
  PackedLinear head_;
  RotaryTable rotary_;
  float norm_epsilon_;
  std::size_t weights_ = 0;
};

/// Checks that the engine can serve the model. Input error at `config.where`: mixtures of experts.
[[nodiscard]] Status check_servable(const TransformerConfig& config);

}  // namespace orrery
