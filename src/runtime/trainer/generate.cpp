#include "runtime/trainer/generate.hpp"

#include <algorithm>
#include <numeric>

#include "base/assert.hpp"
#include "base/numbers/math.hpp"

namespace orrery {
namespace {

/// Keeps the first weights that sum to `enough`, at least one; returns their sum.
double cut_tail(std::vector<double>& weights, double enough) {
  double total = 0;
  std::size_t kept = 0;
  while (kept < weights.size() && (kept == 0 || total < enough)) total += weights[kept++];
  weights.resize(kept);
  return total;
}

}  // namespace

std::int32_t sample_token(std::span<const float> logits, const GenerateOptions& options, Rng& rng) {
  if (options.temperature <= 0) {
    return static_cast<std::int32_t>(std::ranges::max_element(logits) - logits.begin());
  }
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto score = [&](std::int32_t token) { return logits[static_cast<std::size_t>(token)]; };
  std::ranges::stable_sort(order, std::ranges::greater{}, score);
  const auto limit = static_cast<std::size_t>(options.top_k);
  if (limit > 0 && limit < order.size()) order.resize(limit);
  std::vector<double> weights;
  weights.reserve(order.size());
  double total = 0;
  for (const std::int32_t token : order) {
    const auto below = static_cast<double>(score(token) - score(order.front()));
    weights.push_back(math::exp(below / options.temperature));
    total += weights.back();
  }
  if (options.top_p < 1) total = cut_tail(weights, options.top_p * total);
  double left = rng.uniform() * total;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    left -= weights[i];
    if (left < 0) return order[i];
  }
  return order[weights.size() - 1];  // reached only through rounding
}

std::vector<std::int32_t> generate(TrainableTransformer& model, std::span<const float> parameters,
                                   std::span<const std::int32_t> prompt,
                                   const GenerateOptions& options) {
  ORRERY_ASSERT(!prompt.empty(), "the first token follows something");
  const TransformerConfig& config = model.layout().config();
  Rng rng = Rng::stream(options.seed, "generate");
  std::vector<std::int32_t> text(prompt.begin(), prompt.end());
  std::vector<float> logits(static_cast<std::size_t>(config.vocab));
  for (std::int64_t i = 0; i < options.tokens; ++i) {
    const std::size_t seen = std::min(text.size(), static_cast<std::size_t>(config.sequence));
    model.logits(parameters, std::span(text).last(seen), logits);
    text.push_back(sample_token(logits, options, rng));
  }
  return {text.begin() + static_cast<std::ptrdiff_t>(prompt.size()), text.end()};
}

}  // namespace orrery
