#include "serving/engine_step_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

namespace orrery {
namespace {

constexpr std::size_t kTerms = 5;
constexpr std::size_t kSamplesMin = 10;
/// Steps this many times as long as the fit says are no work of the engine.
constexpr double kStalled = 10;

using Terms = std::array<double, kTerms>;

Terms terms_of(const EngineStepWork& work) {
  return {1, work.sequences, work.context, work.prompt, work.prompt_context};
}

/// Sums of products of the terms, each over the step's length, and of them with one.
struct Products {
  std::array<Terms, kTerms> squares{};
  Terms sums{};
  double samples = 0;
};

Products products_of(std::span<const EngineStepSample> samples, const Terms& scale) {
  Products sums;
  for (const EngineStepSample& each : samples) {
    Terms terms = terms_of(each.work);
    for (std::size_t i = 0; i < kTerms; ++i) terms[i] *= scale[i] / each.seconds;
    for (std::size_t i = 0; i < kTerms; ++i) {
      sums.sums[i] += terms[i];
      for (std::size_t j = 0; j < kTerms; ++j) sums.squares[i][j] += terms[i] * terms[j];
    }
    sums.samples += 1;
  }
  return sums;
}

/// Solves for the terms of a set by elimination; none: they depend on each other.
std::optional<Terms> solve(const Products& sums, unsigned set) {
  std::array<Terms, kTerms> rows = sums.squares;
  Terms right = sums.sums;
  std::array<std::size_t, kTerms> used{};
  std::size_t count = 0;
  for (std::size_t i = 0; i < kTerms; ++i) {
    if ((set >> i & 1U) != 0) used[count++] = i;
  }
  for (std::size_t a = 0; a < count; ++a) {
    const std::size_t i = used[a];
    if (rows[i][i] < 1e-10 * sums.squares[i][i]) return std::nullopt;
    for (std::size_t b = a + 1; b < count; ++b) {
      const std::size_t k = used[b];
      const double factor = rows[k][i] / rows[i][i];
      for (std::size_t c = a; c < count; ++c) rows[k][used[c]] -= factor * rows[i][used[c]];
      right[k] -= factor * right[i];
    }
  }
  Terms found{};
  for (std::size_t a = count; a-- > 0;) {
    const std::size_t i = used[a];
    double rest = right[i];
    for (std::size_t b = a + 1; b < count; ++b) rest -= rows[i][used[b]] * found[used[b]];
    found[i] = rest / rows[i][i];
  }
  return found;
}

/// The sum of squares that is left.
double left_over(const Products& sums, const Terms& found) {
  double left = sums.samples;
  for (std::size_t i = 0; i < kTerms; ++i) {
    left -= 2 * found[i] * sums.sums[i];
    for (std::size_t j = 0; j < kTerms; ++j) left += found[i] * found[j] * sums.squares[i][j];
  }
  return left;
}

EngineStepCost fit_once(std::span<const EngineStepSample> samples) {
  // Each term has a size of one on average, so that the elimination loses no digits.
  Terms scale{};
  for (const EngineStepSample& each : samples) {
    const Terms terms = terms_of(each.work);
    for (std::size_t i = 0; i < kTerms; ++i) scale[i] += terms[i] / each.seconds;
  }
  for (double& each : scale) each = each > 0 ? static_cast<double>(samples.size()) / each : 0;
  const Products sums = products_of(samples, scale);
  Terms best{};
  double least = std::numeric_limits<double>::infinity();
  for (unsigned set = 1; set < 1U << kTerms; ++set) {
    const std::optional<Terms> found = solve(sums, set);
    if (!found || std::ranges::any_of(*found, [](double term) { return !(term >= 0); })) continue;
    const double left = left_over(sums, *found);
    if (left < least) {
      least = left;
      best = *found;
    }
  }
  return {.step_s = best[0] * scale[0],
          .sequence_s = best[1] * scale[1],
          .context_token_s = best[2] * scale[2],
          .prompt_token_s = best[3] * scale[3],
          .prompt_pair_s = best[4] * scale[4]};
}

/// Scales the terms so that all steps together take as long as they took: where steps scatter, the
/// least relative error is that of the shorter ones, and queues follow from the mean.
void keep_total(std::span<const EngineStepSample> samples, EngineStepCost& cost) {
  double measured = 0;
  double fitted = 0;
  for (const EngineStepSample& each : samples) {
    measured += each.seconds;
    fitted += seconds_of(cost, each.work);
  }
  if (!(fitted > 0)) return;
  const double factor = measured / fitted;
  for (double* term : {&cost.step_s, &cost.sequence_s, &cost.context_token_s, &cost.prompt_token_s,
                       &cost.prompt_pair_s}) {
    *term *= factor;
  }
}

}  // namespace

Result<EngineStepFit> fit_engine_step_cost(std::span<const EngineStepSample> samples) {
  if (samples.size() < kSamplesMin) {
    return input_error({},
                       fmt::format("{} steps, expected at least {}", samples.size(), kSamplesMin));
  }
  for (const EngineStepSample& each : samples) {
    if (!(each.seconds > 0 && std::isfinite(each.seconds))) {
      return input_error({}, fmt::format("a step of {} s, expected more than 0", each.seconds));
    }
  }
  EngineStepFit fit{.cost = fit_once(samples)};
  std::vector<EngineStepSample> kept(samples.begin(), samples.end());
  std::erase_if(kept, [&](const EngineStepSample& each) {
    return each.seconds > kStalled * seconds_of(fit.cost, each.work);
  });
  if (kept.size() >= kSamplesMin) fit.cost = fit_once(kept);
  keep_total(kept, fit.cost);
  fit.samples = kept.size();
  for (const EngineStepSample& each : kept) {
    fit.error += std::abs(seconds_of(fit.cost, each.work) / each.seconds - 1);
  }
  fit.error /= static_cast<double>(std::max<std::size_t>(kept.size(), 1));
  return fit;
}

}  // namespace orrery
