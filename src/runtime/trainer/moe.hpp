// runtime/trainer/moe.hpp - the feed-forward part of a layer as a mixture of experts, forward and
// backward (A. Q. Jiang et al., "Mixtral of Experts", 2024): a router scores the experts for each
// row, the row goes to those with the best scores, and their results are added up with the scores'
// softmax for weights. No expert is ever full, so no row is dropped.
//
// Owned by a TrainableTransformer, whose activations it works on; used by one thread at a time.
// Owns the routing of a layer's rows while it works on them. If ranks share the model, it computes
// the experts, or columns of them, that are on this rank: results and gradients are then partial
// sums. Invariant: rows of an expert keep their order, and a row's results are added in the
// experts' order. Cost: the products of the chosen experts, one per matrix and expert, in
// `products`' precision; the router's in float32. In bfloat16, where each size of a product needs
// its own kernel, an expert's rows are padded with zeros to a multiple of 16.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/kernels/gemm.hpp"
#include "runtime/kernels/kernels.hpp"
#include "runtime/trainer/parameter_layout.hpp"

namespace orrery {

/// The router's output: rows x experts scores.
struct RouterScores {
  const float* scores = nullptr;
  std::int64_t rows = 0;
  std::int64_t experts = 0;
  std::int64_t chosen = 0;  ///< experts that a row goes to
};

/// Which rows go to which experts. A place is row x chosen + choice.
struct ExpertRouting {
  std::vector<std::int32_t> experts;    ///< by place; the best of a row first
  std::vector<float> weights;           ///< by place; those of a row have the sum 1
  std::vector<std::int64_t> by_expert;  ///< places, expert after expert, ascending for each
  std::vector<std::int64_t> begin;      ///< begin of each expert's in by_expert, then the end
};

/// Chooses the experts with the best scores of each row, the lower experts among equal scores;
/// their weights are the softmax over the chosen scores. O(rows x experts x chosen).
void choose_experts(const RouterScores& of, ExpertRouting& routing);

/// Returns experts x sum over the experts of (its share of all choices) x (its mean probability),
/// where probabilities are the softmax over all experts: 1 if all experts are chosen equally often,
/// and about `experts` if one gets every row (W. Fedus et al., "Switch Transformers", 2021, section
/// 2.2).
[[nodiscard]] double balance_loss(const RouterScores& of, const ExpertRouting& routing);

/// Returns the rows of memory that one expert needs for at most `rows` rows.
[[nodiscard]] std::int64_t rows_of_expert(const TransformerConfig& config, std::int64_t rows);

/// Returns the rows of memory that the experts of the layout need for `rows` rows, whatever the
/// router does: each row goes to as many experts as it chooses, and if fewer are on this rank,
/// perhaps to all of them.
[[nodiscard]] std::int64_t rows_of_experts(const ParameterLayout& layout, std::int64_t rows);

/// A layer's rows in a micro-batch. Kept between forward and backward pass: scores, inner,
/// activation.
struct MoeRows {
  const float* parameters = nullptr;  ///< parameters of the whole layout
  const MoeParameters& layer;
  std::int64_t count = 0;
  const float* x = nullptr;     ///< count x width
  float* scores = nullptr;      ///< count x experts
  float* inner = nullptr;       ///< for each choice of an expert here: rows_of_experts()
  float* activation = nullptr;  ///< as inner
  float* gathered = nullptr;    ///< room for rows_of_expert() x width
};

struct MoeGradient {
  const float* out = nullptr;   ///< gradient of the output: count x width
  float* x = nullptr;           ///< gradient of the input
  float* inner = nullptr;       ///< room for one expert's rows: rows_of_expert()
  float* activation = nullptr;  ///< as inner
  float* parameters = nullptr;  ///< gradient of the whole layout; added to
  float loss_scale = 1;         ///< factor of the balance loss, beside the configured one
};

class MixtureOfExperts {
 public:
  /// `rows` is the most rows of a layer. Precondition: layout.config().experts > 0. Borrows both
  /// layout and products.
  MixtureOfExperts(const ParameterLayout& layout, std::int64_t rows, MatrixMultiplier& products);

  /// Fills what is kept for the backward pass.
  void forward(const MoeRows& rows);
  /// Adds the result to `out`. Precondition: forward() of these rows was the call before.
  void add_result(const MoeRows& rows, float* out);
  /// Writes the experts' part of gradient.x, and choice_gradient().
  void experts_backward(const MoeRows& rows, const MoeGradient& gradient);
  /// The gradient of the weights of the layer's choices, by place: ranks that share the layer sum
  /// theirs before router_backward().
  [[nodiscard]] std::span<float> choice_gradient(const MoeRows& rows);
  /// Adds the router's gradient, with the balance loss's; adds to gradient.x, too, unless it is
  /// nullptr. Precondition: experts_backward() of these rows was the call before.
  void router_backward(const MoeRows& rows, const MoeGradient& gradient);
  /// Returns the balance loss of rows whose scores are known. Other rows may have been computed
  /// since.
  [[nodiscard]] double balance(const float* scores, std::int64_t rows);

 private:
  /// The rows of one of the experts on this rank.
  struct Group {
    const ExpertParameters& expert;
    std::span<const std::int64_t> places;
    std::int64_t rows = 0;  ///< number of places, plus padding rows of zeros
    float* inner = nullptr;
    float* activation = nullptr;
  };
  [[nodiscard]] RouterScores scores_of(const float* scores, std::int64_t rows) const;
  [[nodiscard]] std::vector<Group> groups_of(const MoeRows& rows) const;
  void gather(const Group& group, const float* x, float* to) const;
  void scatter(const Group& group, const float* from, float* to) const;
  void activate(const Group& group) const;
  [[nodiscard]] const float* activate_backward(const Group& group, const MoeGradient& gradient);
  void expert_backward(const MoeRows& rows, const MoeGradient& gradient, const Group& group);
  void weigh(const MoeRows& rows, const MoeGradient& gradient, const Group& group);
  void score_gradients(const MoeRows& rows, float loss_scale);
  void multiply(const LinearParameters& linear, FloatProduct product);
  void multiply_back(const LinearParameters& linear, FloatProduct product);
  void add_weight_gradient(const LinearParameters& linear, FloatProduct product);

  const KernelTable& kernels_;
  const TransformerConfig& config_;
  MatrixMultiplier& products_;
  ExpertRouting routing_;  ///< routing of the current rows
  std::vector<float> choice_gradient_;
  std::vector<float> score_gradient_;
};

}  // namespace orrery
