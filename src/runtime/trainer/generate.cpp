#include "runtime/trainer/generate.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/assert.hpp"
#include "base/numbers/math.hpp"
#include "runtime/kernels/decode_kernels.hpp"
#include "runtime/kernels/kernels.hpp"

namespace orrery {
namespace {

/// A token as a number: the greater, the higher its score; of equal scores, the lower the token.
std::uint64_t rank_of(float score, std::size_t token) {
  const auto bits = std::bit_cast<std::uint32_t>(score + 0.0F);  // the sum makes -0 a 0
  const std::uint32_t ordered = (bits >> 31) != 0 ? ~bits : bits | 0x8000'0000U;
  return (std::uint64_t{ordered} << 32) | ~static_cast<std::uint32_t>(token);
}

std::size_t token_of(std::uint64_t rank) { return ~static_cast<std::uint32_t>(rank); }

/// The `count` most probable tokens in their order. O(vocabulary + count x log count) where the
/// scores are in no order.
std::vector<std::size_t> most_probable(std::span<const float> logits, std::size_t count) {
  std::vector<std::uint64_t> ranks;  // a heap with the least probable on top
  ranks.reserve(count);
  for (std::size_t token = 0; token < logits.size(); ++token) {
    const bool full = ranks.size() == count;
    if (full && logits[token] <= logits[token_of(ranks.front())]) continue;
    if (full) {
      std::ranges::pop_heap(ranks, std::ranges::greater{});
      ranks.pop_back();
    }
    ranks.push_back(rank_of(logits[token], token));
    std::ranges::push_heap(ranks, std::ranges::greater{});
  }
  std::ranges::sort(ranks, std::ranges::greater{});
  std::vector<std::size_t> tokens(ranks.size());
  std::ranges::transform(ranks, tokens.begin(), token_of);
  return tokens;
}

/// Keeps the first weights that sum to `enough`, at least one; returns their sum.
double cut_tail(std::vector<double>& weights, double enough) {
  double total = 0;
  std::size_t kept = 0;
  while (kept < weights.size() && (kept == 0 || total < enough)) total += weights[kept++];
  weights.resize(kept);
  return total;
}

/// Returns the place of the weight that a draw meets.
template <class Weights>
std::size_t draw(const Weights& weights, double total, Rng& rng) {
  double left = rng.uniform() * total;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    left -= static_cast<double>(weights[i]);
    if (left < 0) return i;
  }
  return weights.size() - 1;  // reached only through rounding
}

/// The tokens' probabilities up to a factor.
std::vector<float> weights_of(std::span<const float> logits, double temperature) {
  const auto count = static_cast<std::int64_t>(logits.size());
  const float peak = decode_kernels().peak(logits.data(), count);
  const auto factor = static_cast<float>(std::min(1 / temperature, 1e30));
  std::vector<float> weights(logits.size());
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = (logits[i] - peak) * factor;
  kernels().exponential(weights.data(), count, weights.data());
  return weights;
}

/// The most probable token; 0 if there is none, since scores are NaNs.
std::int32_t most_probable(std::span<const float> logits) {
  const float peak = decode_kernels().peak(logits.data(), static_cast<std::int64_t>(logits.size()));
  const auto found = std::ranges::find(logits, peak);
  return found == logits.end() ? 0 : static_cast<std::int32_t>(found - logits.begin());
}

std::size_t draw_of_best(std::span<const float> logits, const GenerateOptions& options, Rng& rng) {
  const std::vector<std::size_t> best =
      most_probable(logits, static_cast<std::size_t>(options.top_k));
  std::vector<double> weights;
  weights.reserve(best.size());
  double total = 0;
  for (const std::size_t token : best) {
    const auto below = static_cast<double>(logits[token] - logits[best.front()]);
    weights.push_back(math::exp(below / options.temperature));
    total += weights.back();
  }
  if (options.top_p < 1) total = cut_tail(weights, options.top_p * total);
  return best[draw(weights, total, rng)];
}

std::size_t draw_of_all(std::span<const float> logits, const GenerateOptions& options, Rng& rng) {
  const std::vector<float> all = weights_of(logits, options.temperature);
  const double total = std::accumulate(all.begin(), all.end(), 0.0);
  if (options.top_p >= 1) return draw(all, total, rng);
  // A few tokens mostly have the probability that is asked for.
  for (std::size_t count = 256;; count *= 16) {
    count = std::min(count, all.size());
    const std::vector<std::size_t> best = most_probable(logits, count);
    std::vector<double> weights(count);
    for (std::size_t i = 0; i < count; ++i) weights[i] = static_cast<double>(all[best[i]]);
    const double kept = cut_tail(weights, options.top_p * total);
    if (kept < options.top_p * total && count < all.size()) continue;
    return best[draw(weights, kept, rng)];
  }
}

}  // namespace

std::int32_t sample_token(std::span<const float> logits, const GenerateOptions& options, Rng& rng) {
  if (options.temperature <= 0) return most_probable(logits);
  const auto limit = static_cast<std::size_t>(options.top_k);
  const bool limited = limit > 0 && limit < logits.size();
  return static_cast<std::int32_t>(limited ? draw_of_best(logits, options, rng)
                                           : draw_of_all(logits, options, rng));
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
