// runtime/trainer/transformer.hpp - a language model's loss and its gradient, with explicit forward
// and backward pass of one micro-batch over weights and gradients that the caller owns.
//
// Built by a rank of a trainer, used by one thread at a time. Owns the activations only, allocated
// once. Invariant: a result depends on the arguments, the configuration and gemm_identity() alone:
// not on addresses, on earlier calls or on the kind of vector unit of the kernels. Memory: about
// layers x sequences x sequence x (8 width + 2 kv width + 2 ffn) floats, 3 ffn for Llama, ffn times
// the experts of a row (rows_of_experts(): room for the worst case of the router); with full
// recomputation this for one layer only, and width for each of the others. A part of a model keeps
// its share of everything wider than the stream, for the layers of a chunk, in each of its slots.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/kernels/aligned_floats.hpp"
#include "runtime/trainer/activations.hpp"
#include "runtime/trainer/moe.hpp"

namespace orrery {

class TrainableTransformer {
 public:
  /// Makes a model for micro-batches of at most `sequences` sequences; it keeps the activations of
  /// `slots` micro-batches at a time, each of one chunk. Preconditions: check(config),
  /// check_parts() and check_precision(config.precision) are fine; there is a slot for each of the
  /// part's chunks, and exactly one if the last (or only) stage has one chunk.
  TrainableTransformer(const TransformerConfig& config, std::int64_t sequences,
                       const ModelPart& part = {}, std::size_t slots = 1);
  TrainableTransformer(const TrainableTransformer&) = delete;
  TrainableTransformer& operator=(const TrainableTransformer&) = delete;
  ~TrainableTransformer();

  [[nodiscard]] const ParameterLayout& layout() const { return layout_; }

  /// Floats of a micro-batch's residual stream: the most that ranks of a shared model exchange.
  [[nodiscard]] static std::size_t stream_floats(const TransformerConfig& config,
                                                 std::int64_t sequences);
  /// Memory that PartPeers::room() must give ranks that share layers, in multiples of
  /// stream_floats().
  [[nodiscard]] static std::size_t rooms(const TransformerConfig& config);
  /// Sets the peers that compute the other parts of the model. To be called before any of the
  /// functions below, which all ranks of the model then call alike. `peers` outlives it.
  void share(PartPeers& peers);

  /// The mean over all tokens of the negative log-likelihood, in nats, of the next token; its
  /// gradient times `loss_scale` is added to `gradient`. `tokens` are sequences of (sequence + 1)
  /// tokens each: the last is only predicted. The last stage returns the loss, others 0.
  /// Precondition: whole sequences, at least one and no more than the constructor allowed; tokens
  /// are below the vocabulary's size.
  float loss_and_gradient(std::span<const float> parameters, std::span<const std::int32_t> tokens,
                          std::span<float> gradient, float loss_scale);

  /// A micro-batch in a chunk of the part; it occupies a slot of its own until its backward pass.
  struct At {
    std::size_t slot = 0;
    std::size_t chunk = 0;
  };
  /// The two halves of loss_and_gradient(), so that a stage can compute other micro-batches between
  /// them. All stages run forward passes in one order, and backward passes in one order. After the
  /// forward pass of the model's last chunk its backward pass is the next of that chunk.
  void forward(std::span<const float> parameters, std::span<const std::int32_t> tokens,
               const At& at);
  float backward(std::span<const float> parameters, const At& at, std::span<float> gradient,
                 float loss_scale);

  /// To be called after the last micro-batch of a gradient: sums the norms' gradient over the ranks
  /// that saw some of the rows, and that of an embedding which the first and the last stage both
  /// have.
  void join(std::span<float> gradient);

  /// Returns the loss without computing the gradient, with the same bits as loss_and_gradient().
  float loss(std::span<const float> parameters, std::span<const std::int32_t> tokens);

  /// Returns the sum of balance_loss() over the layers of the chunk and micro-batch of the slot's
  /// last forward pass; 0 without experts. It is not part of loss(), but its gradient, times the
  /// configured router_loss, is part of the gradient.
  [[nodiscard]] double router_loss(std::size_t slot = 0);

  /// Computes the score of each token of the vocabulary to follow `tokens`. Precondition: 1 to
  /// `sequence` tokens; logits.size() is the vocabulary's size; the model is whole.
  void logits(std::span<const float> parameters, std::span<const std::int32_t> tokens,
              std::span<float> logits);

  /// Bytes of all that it keeps between forward and backward pass.
  [[nodiscard]] std::size_t activation_bytes() const { return arena_.size() * sizeof(float); }
  /// Returns the activation bytes of a model with these arguments.
  [[nodiscard]] static std::size_t activation_bytes(const TransformerConfig& config,
                                                    std::int64_t sequences, const ModelPart& part,
                                                    std::size_t slots);

 private:
  struct Slot;
  struct Pass;
  struct LinearRows;
  struct LinearGradient;

  void split(std::span<const std::int32_t> tokens, Slot& slot) const;
  [[nodiscard]] Pass pass_of(std::span<const float> parameters, const At& at, float* gradient);
  [[nodiscard]] std::span<float> own_stream(const Pass& pass, float* rows) const;
  [[nodiscard]] const float* all_rows(const Pass& pass, const float* own, float* room);
  void embed(const Pass& pass);
  void forward(const Pass& pass);
  void forward_block(const Pass& pass, std::size_t layer);
  void fill_block(const Pass& pass, std::size_t layer);
  void activate(const Pass& pass, const BlockRows& block);
  void norm(const Pass& pass, const NormParameters& parameters, const NormRows& rows);
  float head_loss(const Pass& pass, float scale);
  void backward(const Pass& pass);
  void backward_block(const Pass& pass, std::size_t layer);
  void activate_backward(const Pass& pass, const BlockRows& block);
  [[nodiscard]] MoeRows moe_rows(const Pass& pass, std::size_t layer, const float* x) const;
  void moe_and_sum(const Pass& pass, std::size_t layer, float* stream_out);
  void moe_backward(const Pass& pass, std::size_t layer);
  void norm_backward(const Pass& pass, const NormParameters& parameters, const NormRows& rows);
  void embed_backward(const Pass& pass);
  void project(const Pass& pass, const LinearParameters& linear, const LinearRows& rows);
  void project_and_sum(const Pass& pass, const LinearParameters& linear, const LinearRows& rows);
  void sum_to_stream(const Pass& pass, const float* residual, float* out);
  void sum_norm_gradient(const Pass& pass);
  void join_norms(std::span<float> gradient);
  void project_backward(const Pass& pass, const LinearParameters& linear,
                        const LinearGradient& rows);

  const KernelTable& kernels_;
  ParameterLayout layout_;
  TransformerConfig config_;
  std::int64_t sequences_;
  MatrixMultiplier products_;
  CausalAttention attention_;
  std::optional<MixtureOfExperts> moe_;  ///< if layers have experts
  PartPeers* peers_ = nullptr;           ///< nullptr: the model is whole
  AlignedFloats arena_;
  ActivationRows rows_;  ///< point into the arena
  std::vector<Slot> slots_;
  std::vector<float> losses_;
};

}  // namespace orrery
