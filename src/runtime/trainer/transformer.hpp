// runtime/trainer/transformer.hpp - a language model's loss and its gradient, written out: forward
// and backward pass of one micro-batch over weights and gradients that the caller owns.
//
// Built by a rank of a trainer, used by one thread at a time. Owns the activations only, allocated
// once. Invariant: a result depends on the arguments, the configuration and gemm_identity() alone:
// not on addresses, on earlier calls or on the kind of vector unit of the kernels. Memory: about
// layers x sequences x sequence x (8 width + 2 kv width + 2 ffn) floats, 3 ffn for Llama; with full
// recomputation that of one layer, and width for each of the others. A part of a model keeps its
// part of what is wider than the stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/trainer/aligned_floats.hpp"
#include "runtime/trainer/attention.hpp"
#include "runtime/trainer/parameter_layout.hpp"

namespace orrery {

class TrainableTransformer {
 public:
  /// For micro-batches of at most `sequences` sequences. Precondition: check(config),
  /// check_tensor_ranks() and check_precision(config.precision) are fine.
  TrainableTransformer(const TransformerConfig& config, std::int64_t sequences,
                       const ModelPart& part = {});
  TrainableTransformer(const TrainableTransformer&) = delete;
  TrainableTransformer& operator=(const TrainableTransformer&) = delete;
  ~TrainableTransformer();

  [[nodiscard]] const ParameterLayout& layout() const { return layout_; }

  /// The most floats that ranks of a shared model sum at a time.
  [[nodiscard]] static std::size_t summed_floats(const TransformerConfig& config,
                                                 std::int64_t sequences);
  /// With whom a part's layers are shared, from now on: before any of the below, which all ranks of
  /// the model then call alike. `sums` outlives it.
  void share(PartialSums& sums);

  /// The mean over all tokens of the negative log-likelihood, in nats, of the next token; its
  /// gradient times `loss_scale` is added to `gradient`. `tokens` are sequences of (sequence + 1)
  /// tokens each: the last is only predicted. Precondition: whole sequences, at least one and no
  /// more than the constructor allowed; tokens are below the vocabulary's size.
  float loss_and_gradient(std::span<const float> parameters, std::span<const std::int32_t> tokens,
                          std::span<float> gradient, float loss_scale);

  /// The same loss without the gradient: the same bits.
  float loss(std::span<const float> parameters, std::span<const std::int32_t> tokens);

  /// The scores of each token of the vocabulary to follow `tokens`. Precondition: 1 to `sequence`
  /// tokens; logits.size() is the vocabulary's size.
  void logits(std::span<const float> parameters, std::span<const std::int32_t> tokens,
              std::span<float> logits);

  /// Operations of the matrix products of loss_and_gradient() a token: those the mathematics asks
  /// for, whatever is computed twice. Only the visible half of the attention counts.
  [[nodiscard]] double operations_per_token() const;

  /// Of all that it keeps between forward and backward pass.
  [[nodiscard]] std::size_t activation_bytes() const { return arena_.size() * sizeof(float); }

 private:
  struct NormRows;
  struct Block;
  struct Pass;
  struct LinearRows;
  struct LinearGradient;

  void allocate();
  void split(std::span<const std::int32_t> tokens);
  void embed(const Pass& pass, std::span<const std::int32_t> inputs);
  void forward(const Pass& pass);
  void forward_block(const Pass& pass, std::size_t layer);
  void fill_block(const Pass& pass, std::size_t layer);
  void activate(const Pass& pass, const Block& block);
  void norm(const Pass& pass, const NormParameters& parameters, const NormRows& rows);
  float head_loss(const Pass& pass, float scale);
  void backward(const Pass& pass);
  void backward_block(const Pass& pass, std::size_t layer);
  void activate_backward(const Pass& pass, const Block& block);
  void norm_backward(const Pass& pass, const NormParameters& parameters, const NormRows& rows);
  void embed_backward(const Pass& pass);
  void project(const Pass& pass, const LinearParameters& linear, const LinearRows& rows);
  void project_and_sum(const Pass& pass, const LinearParameters& linear, const LinearRows& rows);
  void sum_norm_gradient(const Pass& pass);
  void project_backward(const Pass& pass, const LinearParameters& linear,
                        const LinearGradient& rows);

  const KernelTable& kernels_;
  ParameterLayout layout_;
  TransformerConfig config_;
  std::int64_t sequences_;
  std::vector<std::int32_t> inputs_;
  std::vector<std::int32_t> targets_;
  MatrixMultiplier products_;
  CausalAttention attention_;
  PartialSums* sums_ = nullptr;  ///< none: the model is whole
  AlignedFloats arena_;
  std::vector<Block> blocks_;
  std::vector<float> losses_;
  // Rows of the arena that no layer owns.
  float* stream_out_ = nullptr;  ///< the residual stream after the last layer
  float* final_mean_ = nullptr;
  float* final_inverse_ = nullptr;
  float* final_out_ = nullptr;
  float* logits_ = nullptr;
  float* stream_gradient_ = nullptr;
  float* norm_gradient_ = nullptr;  ///< of a norm's result, and of the attention's; partial sums
  float* qkv_gradient_ = nullptr;
  float* inner_gradient_ = nullptr;  ///< of what goes into the activation
  float* activation_gradient_ = nullptr;
};

}  // namespace orrery
