// serving/tiers/tier_model.hpp - how probable it is that a small model answers a request as well as
// the large one.
//
// A logistic regression over what a gateway sees of a request, fitted to labelled tasks: each was
// answered by both models, and it is known whether the small one's answer is good enough. Values;
// pure. Cost of a probability: O(features).
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "base/error.hpp"

namespace orrery {

/// What is seen of a request, in the order of tier_features() of its maker. Any finite numbers.
inline constexpr std::size_t kTierFeatures = 8;
using TierFeatures = std::array<double, kTierFeatures>;

struct LabelledTask {
  TierFeatures features{};
  bool good = false;  ///< the small model's answer is as good as the large one's
};

struct TierModel {
  TierFeatures mean{};                              ///< of the tasks that it was fitted to
  TierFeatures scale{};                             ///< standard deviations of these
  std::array<double, kTierFeatures + 1> weights{};  ///< of the scaled features; the last: constant

  friend bool operator==(const TierModel&, const TierModel&) = default;
};

/// The probability that the small model is good enough.
[[nodiscard]] double probability_of(const TierModel& model, const TierFeatures& features);

/// Fits a model by Newton's method with a small ridge, which keeps it finite where the tasks are
/// separable. Error: fewer than 20 tasks, a feature that is not finite. O(tasks * features^2).
[[nodiscard]] Result<TierModel> fit_tier_model(std::span<const LabelledTask> tasks);

/// A task that the model was not fitted to.
struct ScoredTask {
  double probability = 0;
  bool good = false;
};

/// The lowest probability from which on the small model may answer, so that with confidence
/// 1 - `delta` at most `loss_max` of all requests like `tasks` get a worse answer: thresholds are
/// tested from strict to lax until one fails (Angelopoulos et al., Learn then Test, 2021), each by
/// the exact binomial tail. None below one half: what is probably worse is not worth the saving.
/// None: not even the strictest passes. O(tasks log tasks).
[[nodiscard]] std::optional<double> tier_threshold(std::span<const ScoredTask> tasks,
                                                   double loss_max, double delta);

/// P(X <= k) of a binomial distribution. Precondition: k <= n, 0 < p < 1. O(k).
[[nodiscard]] double binomial_tail(std::size_t n, std::size_t k, double p);

}  // namespace orrery
