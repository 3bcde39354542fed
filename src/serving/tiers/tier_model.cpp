#include "serving/tiers/tier_model.hpp"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <vector>

namespace orrery {
namespace {

constexpr std::size_t kTasksMin = 20;
constexpr double kRidge = 1e-2;
constexpr int kRounds = 50;
constexpr int kWeights = static_cast<int>(kTierFeatures) + 1;
using Weights = Eigen::Matrix<double, kWeights, 1>;

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

Weights scaled(const TierModel& model, const TierFeatures& features) {
  Weights x;
  for (std::size_t i = 0; i < kTierFeatures; ++i) {
    x[static_cast<int>(i)] = (features[i] - model.mean[i]) / model.scale[i];
  }
  x[kWeights - 1] = 1;
  return x;
}

/// Sets the means and deviations; a feature that is always the same has deviation 1.
void set_scale(TierModel& model, std::span<const LabelledTask> tasks) {
  const auto count = static_cast<double>(tasks.size());
  for (std::size_t i = 0; i < kTierFeatures; ++i) {
    double sum = 0;
    for (const LabelledTask& task : tasks) sum += task.features[i];
    model.mean[i] = sum / count;
    double squares = 0;
    for (const LabelledTask& task : tasks) squares += std::pow(task.features[i] - model.mean[i], 2);
    const double deviation = std::sqrt(squares / count);
    model.scale[i] = deviation > 0 ? deviation : 1;
  }
}

}  // namespace

double probability_of(const TierModel& model, const TierFeatures& features) {
  double sum = model.weights[kTierFeatures];
  for (std::size_t i = 0; i < kTierFeatures; ++i) {
    sum += model.weights[i] * (features[i] - model.mean[i]) / model.scale[i];
  }
  return logistic(sum);
}

Result<TierModel> fit_tier_model(std::span<const LabelledTask> tasks) {
  if (tasks.size() < kTasksMin) {
    return input_error(
        {}, fmt::format("{} labelled tasks, expected at least {}", tasks.size(), kTasksMin));
  }
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const bool finite =
        std::ranges::all_of(tasks[i].features, [](double x) { return std::isfinite(x); });
    if (!finite) return input_error({}, fmt::format("task {}: a feature is not finite", i + 1));
  }
  TierModel model;
  set_scale(model, tasks);
  Weights weights = Weights::Zero();
  for (int round = 0; round < kRounds; ++round) {
    Eigen::Matrix<double, kWeights, kWeights> curvature =
        kRidge * Eigen::Matrix<double, kWeights, kWeights>::Identity();
    Weights slope = -kRidge * weights;
    for (const LabelledTask& task : tasks) {
      const Weights x = scaled(model, task.features);
      const double p = logistic(weights.dot(x));
      slope += ((task.good ? 1.0 : 0.0) - p) * x;
      curvature += p * (1 - p) * x * x.transpose();
    }
    const Weights step = curvature.ldlt().solve(slope);
    // A full step may overshoot where almost all tasks are separable.
    weights += step * std::min(1.0, 4 / std::max(step.norm(), 1e-12));
    if (step.norm() < 1e-9) break;
  }
  std::copy_n(weights.data(), kWeights, model.weights.begin());
  return model;
}

double binomial_tail(std::size_t n, std::size_t k, double p) {
  const auto size = static_cast<double>(n);
  double sum = 0;
  for (std::size_t i = 0; i <= k; ++i) {
    const auto at = static_cast<double>(i);
    sum += std::exp(std::lgamma(size + 1) - std::lgamma(at + 1) - std::lgamma(size - at + 1) +
                    at * std::log(p) + (size - at) * std::log1p(-p));
  }
  return std::min(sum, 1.0);
}

std::optional<double> tier_threshold(std::span<const ScoredTask> tasks, double loss_max,
                                     double delta) {
  std::vector<ScoredTask> strict(tasks.begin(), tasks.end());
  std::ranges::sort(strict, std::ranges::greater(), &ScoredTask::probability);
  constexpr std::size_t kSteps = 50;
  constexpr double kLikely = 0.5;
  std::optional<double> passed;
  std::size_t at = 0;
  std::size_t worse = 0;
  for (std::size_t step = 1; step <= kSteps && at < strict.size(); ++step) {
    std::size_t end = std::max(strict.size() * step / kSteps, at + 1);
    // A threshold lets all tasks of the same probability pass.
    while (end < strict.size() && strict[end].probability == strict[end - 1].probability) ++end;
    if (strict[end - 1].probability < kLikely) break;
    for (; at < end; ++at) worse += strict[at].good ? 0 : 1;
    if (binomial_tail(strict.size(), worse, loss_max) > delta) break;
    passed = strict[at - 1].probability;
  }
  return passed;
}

}  // namespace orrery
