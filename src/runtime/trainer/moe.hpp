// runtime/trainer/moe.hpp - the feed-forward part of a layer as a mixture of experts, forward and
// backward (A. Q. Jiang et al., "Mixtral of Experts", 2024): a router scores the experts for each
// row, the row goes to those with the best scores, and their results are added up with the scores'
// softmax for weights. No expert is ever full, so no row is dropped.
//
// Owned by a TrainableTransformer, whose activations it works on; used by one thread at a time.
// Owns what it says of a layer's rows while it works on them. Of a model that ranks share it
// computes the experts, or columns of them, that are here: results and gradients are partial sums
// then. Invariant: rows of an expert stand in their order, and a row's results are added in the
// experts' order. Cost: the products of the chosen experts, one a matrix and expert, in
// `products`' precision; the router's in float32. In bfloat16, where each size of a product has a
// kernel of its own, an expert's rows are filled up with zeros to a multiple of 16.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/trainer/gemm.hpp"
#include "runtime/trainer/kernels.hpp"
#include "runtime/trainer/parameter_layout.hpp"

namespace orrery {

/// What the router makes of rows: rows x experts.
struct RouterScores {
  const float* scores = nullptr;
  std::int64_t rows = 0;
  std::int64_t experts = 0;
  std::int64_t chosen = 0;  ///< experts that a row goes to
};

/// Which rows go to which experts. A place is row x chosen + choice.
struct ExpertRouting {
  std::vector<std::int32_t> experts;    ///< by place; of a row, the best first
  std::vector<float> weights;           ///< by place; those of a row have the sum 1
  std::vector<std::int64_t> by_expert;  ///< places, expert after expert, of each in ascending order
  std::vector<std::int64_t> begin;      ///< of each expert's in by_expert, then the end
};

/// The best scores of each row, of equal ones those of the lower experts; their weights are the
/// softmax over them. O(rows x experts x chosen).
void choose_experts(const RouterScores& of, ExpertRouting& routing);

/// experts x sum over the experts of (its share of all choices) x (its mean probability), where
/// probabilities are the softmax over all experts: 1 if all get the same, and about `experts` if
/// one gets everything (W. Fedus et al., "Switch Transformers", 2021, section 2.2).
[[nodiscard]] double balance_loss(const RouterScores& of, const ExpertRouting& routing);

/// Room that one expert's rows take, of at most `rows` of them.
[[nodiscard]] std::int64_t rows_of_expert(const TransformerConfig& config, std::int64_t rows);

/// Room that all rows take that go to experts of the layout, of `rows` rows, whatever the router
/// does: each goes to as many as it chooses, and where fewer are here, perhaps to all of them.
[[nodiscard]] std::int64_t rows_of_experts(const ParameterLayout& layout, std::int64_t rows);

/// A layer's rows in a micro-batch. Kept between forward and backward pass: scores, inner,
/// activation.
struct MoeRows {
  const float* parameters = nullptr;  ///< of the whole layout
  const MoeParameters& layer;
  std::int64_t count = 0;
  const float* x = nullptr;     ///< count x width
  float* scores = nullptr;      ///< count x experts
  float* inner = nullptr;       ///< of each choice of an expert here: rows_of_experts()
  float* activation = nullptr;  ///< the same
  float* gathered = nullptr;    ///< room for rows_of_expert() x width
};

struct MoeGradient {
  const float* out = nullptr;   ///< of the result: count x width
  float* x = nullptr;           ///< of what went in
  float* inner = nullptr;       ///< room for one expert's: rows_of_expert()
  float* activation = nullptr;  ///< the same
  float* parameters = nullptr;  ///< added to, of the whole layout
  float loss_scale = 1;         ///< of the balance loss's gradient, beside the configured one
};

class MixtureOfExperts {
 public:
  /// For at most `rows` rows of a layer. Precondition: layout.config().experts > 0. Borrows both
  /// layout and products.
  MixtureOfExperts(const ParameterLayout& layout, std::int64_t rows, MatrixMultiplier& products);

  /// Fills what is kept.
  void forward(const MoeRows& rows);
  /// Adds the result to `out`. Precondition: forward() of these rows was the call before.
  void add_result(const MoeRows& rows, float* out);
  /// Writes gradient.x as far as the experts make it, and choice_gradient().
  void experts_backward(const MoeRows& rows, const MoeGradient& gradient);
  /// Of the weights of the layer's choices, by place: ranks that share the layer add theirs up
  /// before router_backward().
  [[nodiscard]] std::span<float> choice_gradient(const MoeRows& rows);
  /// The router's own, with the balance loss's; adds to gradient.x, unless it is nullptr.
  /// Precondition: experts_backward() of these rows was the call before.
  void router_backward(const MoeRows& rows, const MoeGradient& gradient);
  /// Of rows whose scores are known. Calls of others may come between.
  [[nodiscard]] double balance(const float* scores, std::int64_t rows);

 private:
  /// The rows of one of the experts here.
  struct Group {
    const ExpertParameters& expert;
    std::span<const std::int64_t> places;
    std::int64_t rows = 0;  ///< as many as places, or more, which are 0
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
  ExpertRouting routing_;  ///< of the rows at hand
  std::vector<float> choice_gradient_;
  std::vector<float> score_gradient_;
};

}  // namespace orrery
