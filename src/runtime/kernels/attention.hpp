// runtime/kernels/attention.hpp - causal attention of one layer, forward and backward, as matrix
// products per head and block of 64 query rows; columns that no row of a block may see are not
// computed.
//
// Owned by a TrainableTransformer. The forward pass does not keep the probabilities, which are
// recomputed (T. Dao et al., "FlashAttention", 2022), but only two floats per row and head. Not
// thread-safe. Cost of the forward pass: about 2 x sequences x heads x time^2 x head width
// operations, of the backward 3.5 times that.
#pragma once

#include <cstdint>

#include "runtime/kernels/aligned_floats.hpp"
#include "runtime/kernels/gemm.hpp"
#include "runtime/kernels/kernels.hpp"
#include "runtime/trainer/transformer_config.hpp"

namespace orrery {

/// Rows of a micro-batch: sequences of equal length, one after another.
struct TokenRows {
  std::int64_t sequences = 0;
  std::int64_t time = 0;  ///< tokens of each sequence
  [[nodiscard]] std::int64_t count() const { return sequences * time; }
};

/// What a layer keeps of its attention. A row of `qkv` is the queries of all heads, then the keys,
/// then the values.
struct AttentionRows {
  float* qkv = nullptr;
  float* out = nullptr;
  float* peak = nullptr;         ///< heads x rows
  float* inverse_sum = nullptr;  ///< heads x rows
};

/// Gradients of `out`, which is read, and of `qkv`, which is written.
struct AttentionGradient {
  const float* out = nullptr;
  float* qkv = nullptr;
};

class CausalAttention {
 public:
  /// Precondition: check(config) is fine. Borrows `products`.
  CausalAttention(const TransformerConfig& config, MatrixMultiplier& products);

  /// Turns queries and keys of `rows.qkv` in place where the family has rotary positions, then
  /// fills the rest. Precondition: the sequences are no longer than the configuration's.
  void forward(const TokenRows& batch, const AttentionRows& rows);
  void backward(const TokenRows& batch, const AttentionRows& rows,
                const AttentionGradient& gradient);

 private:
  struct Head;
  [[nodiscard]] Head head_of(const TokenRows& batch, const AttentionRows& rows,
                             std::int64_t index) const;
  void rotate(const TokenRows& batch, float* qkv, float direction) const;
  void forward_block(const Head& head, std::int64_t first, std::int64_t end);
  void backward_block(const Head& head, std::int64_t first, std::int64_t end);

  const KernelTable& kernels_;
  MatrixMultiplier& products_;
  std::int64_t heads_;
  std::int64_t kv_heads_;
  std::int64_t head_width_;
  std::int64_t stride_;  ///< floats of a row of qkv
  float scale_;          ///< factor of the scores: 1 / sqrt(head width)
  AlignedFloats scores_;
  AlignedFloats score_gradient_;
  AlignedFloats cosine_;  ///< empty without rotary positions
  AlignedFloats sine_;
};

}  // namespace orrery
