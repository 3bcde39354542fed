// runtime/trainer/transformer_config.hpp - the shape of a language model the trainer can train: a
// GPT (LayerNorm, GELU, learned positions) or a Llama (RMSNorm, rotary positions, SwiGLU, grouped
// heads), whose feed-forward parts may be mixtures of experts.
//
// A plain value, read from a file by describe() or written in code, and checked by check() before
// anything is made of it. Invariant of a checked value: heads divide the width, key-value heads
// divide the heads, and every row is a whole number of the kernels' vectors.
#pragma once

#include <array>
#include <cstdint>

#include "base/error.hpp"
#include "base/format/field_reader.hpp"

namespace orrery {

enum class TransformerFamily { kGpt, kLlama };

inline std::array<EnumWord<TransformerFamily>, 2> enum_words(TransformerFamily) {
  return {{{"gpt", TransformerFamily::kGpt}, {"llama", TransformerFamily::kLlama}}};
}

/// Precision of the factors of matrix products; sums, weights and all else are float32.
enum class ProductPrecision { kFloat32, kBfloat16 };

inline std::array<EnumWord<ProductPrecision>, 2> enum_words(ProductPrecision) {
  return {{{"float32", ProductPrecision::kFloat32}, {"bfloat16", ProductPrecision::kBfloat16}}};
}

/// What the backward pass recomputes instead of keeping it.
enum class ActivationRecompute {
  kNone,
  kFull,  ///< all of a layer except its input
};

inline std::array<EnumWord<ActivationRecompute>, 2> enum_words(ActivationRecompute) {
  return {{{"none", ActivationRecompute::kNone}, {"full", ActivationRecompute::kFull}}};
}

struct TransformerConfig {
  TransformerFamily family = TransformerFamily::kGpt;
  std::int64_t layers = 4;
  std::int64_t width = 256;     ///< width of the residual stream
  std::int64_t heads = 4;       ///< query heads
  std::int64_t kv_heads = 0;    ///< key and value heads; 0: as many as heads
  std::int64_t ffn = 0;         ///< inner width of the feed-forward part; 0: 4 widths
  std::int64_t vocab = 256;     ///< kinds of tokens
  std::int64_t sequence = 256;  ///< tokens of the longest sequence
  std::int64_t experts = 0;     ///< experts per feed-forward part, each of inner width ffn; 0: none
  std::int64_t experts_per_token = 2;
  double router_loss = 0.01;   ///< factor of each layer's balance_loss() in the objective
  bool tied_embedding = true;  ///< the head's weight is the token embedding
  double rope_base = 10'000;   ///< base of the rotary angles; GPT has none
  ProductPrecision precision = ProductPrecision::kFloat32;
  ActivationRecompute recompute = ActivationRecompute::kNone;  ///< does not change the bits
  SourcePosition where;

  [[nodiscard]] std::int64_t head_width() const { return width / heads; }
  [[nodiscard]] std::int64_t key_value_heads() const { return kv_heads == 0 ? heads : kv_heads; }
  [[nodiscard]] std::int64_t key_value_width() const { return key_value_heads() * head_width(); }
  [[nodiscard]] std::int64_t inner_width() const { return ffn == 0 ? 4 * width : ffn; }
};

template <class Visitor, SameStruct<TransformerConfig> Self>
void describe(Visitor& visitor, Self& config) {
  visitor.optional("family", config.family);
  visitor.optional("layers", config.layers);
  visitor.optional("width", config.width);
  visitor.optional("heads", config.heads);
  visitor.optional("kv_heads", config.kv_heads);
  visitor.optional("ffn", config.ffn);
  visitor.optional("vocab", config.vocab);
  visitor.optional("sequence", config.sequence);
  visitor.optional("experts", config.experts);
  visitor.optional("experts_per_token", config.experts_per_token);
  visitor.optional("router_loss", config.router_loss);
  visitor.optional("tied_embedding", config.tied_embedding);
  visitor.optional("rope_base", config.rope_base);
  visitor.optional("precision", config.precision);
  visitor.optional("recompute", config.recompute);
}

/// Returns the first reason why the model cannot be trained, as an input error at `config.where`
/// that names possible values: a size out of range, heads that do not divide, a width that is no
/// multiple of 16.
[[nodiscard]] Status check(const TransformerConfig& config);

}  // namespace orrery
