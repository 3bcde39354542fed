// runtime/kernels/kernels.hpp - what the trainer computes besides matrix products, as plain loops
// over rows of floats, built once for each kind of vector unit and chosen when the program runs.
//
// All builds compute in the same 16 lanes, in the same order, without fused multiply-add, so their
// results are the same bits: the kind of vector unit decides the speed alone. Pure functions, safe
// from every thread. Pointers need no alignment. No function allocates. Cost: a few passes over the
// rows.
#pragma once

#include <cstdint>

namespace orrery {

/// out = (x - mean) / deviation x weight + bias over each row; an RMSNorm omits mean and bias.
/// Keeps what the backward pass needs. `width` is a multiple of 16.
struct NormForward {
  const float* x = nullptr;
  const float* weight = nullptr;
  const float* bias = nullptr;
  std::int64_t rows = 0;
  std::int64_t width = 0;
  float* mean = nullptr;               ///< mean of each row; unused by an RMSNorm
  float* inverse_deviation = nullptr;  ///< inverse deviation of each row
  float* out = nullptr;
  float epsilon = 1e-5F;  ///< added to the variance
};

/// Adds the gradients of x, weight and bias to the existing values.
struct NormBackward {
  const float* x = nullptr;
  const float* weight = nullptr;
  const float* mean = nullptr;
  const float* inverse_deviation = nullptr;
  const float* out_gradient = nullptr;
  std::int64_t rows = 0;
  std::int64_t width = 0;
  float* x_gradient = nullptr;
  float* weight_gradient = nullptr;
  float* bias_gradient = nullptr;
};

/// out = x + bias in each row; either may be absent, and is then 0.
struct RowFill {
  const float* x = nullptr;
  const float* bias = nullptr;
  std::int64_t rows = 0;
  std::int64_t width = 0;
  float* out = nullptr;
};

/// Rows of `width` gate values, then `width` values: out = silu(gate) x value.
struct SwigluRows {
  const float* gate_and_value = nullptr;
  std::int64_t rows = 0;
  std::int64_t width = 0;
  float* out = nullptr;                 ///< forward
  const float* out_gradient = nullptr;  ///< backward
  float* gradient = nullptr;            ///< backward: of gate and value, written
};

/// Turns the pairs (i, i + half) of each head of the row of position p by the angle of (p, i), in
/// place (J. Su et al., "RoFormer", 2021, in the order of Hugging Face's llama).
struct RotaryRows {
  float* x = nullptr;
  std::int64_t stride = 0;  ///< floats from row to row
  std::int64_t rows = 0;    ///< row r has position r % time
  std::int64_t time = 0;
  std::int64_t heads = 0;
  std::int64_t half = 0;          ///< half of a head's width
  const float* cosine = nullptr;  ///< time x half
  const float* sine = nullptr;
  float direction = 1;  ///< -1 turns back, as the gradient needs
};

/// Scores become probabilities in place; row r sees its first `visible + r` columns, the others are
/// 0.
struct CausalSoftmax {
  float* scores = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t visible = 0;
  float* peak = nullptr;         ///< greatest score of each row
  float* inverse_sum = nullptr;  ///< inverse sum of each row's exponentials
};

/// Recomputes probabilities from scores, and turns the probabilities' gradients into those of the
/// scores.
struct CausalSoftmaxBackward {
  float* scores = nullptr;
  float* gradient = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t visible = 0;
  const float* peak = nullptr;
  const float* inverse_sum = nullptr;
};

/// Rows of floats become dense rows of bfloat16, rounded to the nearest, ties to even; a NaN stays
/// one.
struct Bfloat16Rows {
  const float* x = nullptr;
  std::int64_t stride = 0;  ///< floats from row to row
  std::int64_t rows = 0;
  std::int64_t width = 0;
  std::uint16_t* out = nullptr;
};

/// The negative logarithm of each row's softmax at its target.
struct CrossEntropy {
  float* logits = nullptr;
  const std::int32_t* targets = nullptr;
  std::int64_t rows = 0;
  std::int64_t vocab = 0;
  float* loss = nullptr;
  enum class Gradient { kNone, kInPlace } gradient = Gradient::kNone;
  float scale = 1;  ///< factor of the gradient that replaces the logits
};

/// One step of AdamW on a contiguous range (I. Loshchilov and F. Hutter, "Decoupled Weight Decay
/// Regularization", 2019, algorithm 2); runtime/trainer/adamw.hpp explains the numbers.
struct AdamStep {
  float* parameters = nullptr;
  const float* gradient = nullptr;
  float* first = nullptr;
  float* second = nullptr;
  std::int64_t count = 0;
  float gradient_scale = 1;
  float beta1 = 0;
  float beta2 = 0;
  float first_correction = 1;   ///< 1 / (1 - beta1^step)
  float second_correction = 1;  ///< 1 / (1 - beta2^step)
  float epsilon = 0;
  float rate = 0;
  float decay = 0;  ///< rate x decay of the weights
};

/// The kernels of one kind of vector unit.
struct KernelTable {
  const char* isa = "";  ///< "baseline", "avx2" or "avx512"
  void (*layer_norm)(const NormForward&) = nullptr;
  void (*rms_norm)(const NormForward&) = nullptr;
  void (*layer_norm_backward)(const NormBackward&) = nullptr;
  void (*rms_norm_backward)(const NormBackward&) = nullptr;
  void (*fill_rows)(const RowFill&) = nullptr;
  /// Adds all rows to fill.out, in their order.
  void (*sum_rows)(const RowFill& fill) = nullptr;
  /// out = gelu(x), the tanh form (D. Hendrycks and K. Gimpel, "Gaussian Error Linear Units",
  /// 2016).
  void (*gelu)(const float* x, std::int64_t count, float* out) = nullptr;
  /// Multiplies the gradient of gelu(x) by gelu's slope at x.
  void (*gelu_backward)(const float* x, std::int64_t count, float* gradient) = nullptr;
  void (*swiglu)(const SwigluRows&) = nullptr;
  void (*swiglu_backward)(const SwigluRows&) = nullptr;
  void (*rotate)(const RotaryRows&) = nullptr;
  void (*softmax)(const CausalSoftmax&) = nullptr;
  void (*softmax_backward)(const CausalSoftmaxBackward&) = nullptr;
  void (*cross_entropy)(const CrossEntropy&) = nullptr;
  void (*adam)(const AdamStep&) = nullptr;
  void (*to_bfloat16)(const Bfloat16Rows&) = nullptr;
  /// Sum of squares in 16 lanes of doubles, added in a binary tree.
  double (*squares)(const float* x, std::int64_t count) = nullptr;
  /// e^x within 2 ulp for |x| <= 87; beyond, its value at 87 or -87.
  void (*exponential)(const float* x, std::int64_t count, float* out) = nullptr;
};

/// Returns the fastest table that this CPU can run.
[[nodiscard]] const KernelTable& kernels();

/// Returns the table of that name, or nullptr if it was not built or the CPU cannot run it.
[[nodiscard]] const KernelTable* kernels_of(const char* isa);

}  // namespace orrery
