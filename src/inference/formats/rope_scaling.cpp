#include "inference/formats/rope_scaling.hpp"

#include <algorithm>
#include <cstddef>

#include "base/numbers/math.hpp"

namespace orrery {
namespace {

constexpr double kTwoPi = 6.283185307179586;

}  // namespace

std::vector<double> linear_rope_factors(const RopePairs& pairs, double factor) {
  return std::vector<double>(static_cast<std::size_t>(pairs.half), 1 / factor);
}

std::vector<double> llama3_rope_factors(const RopePairs& pairs, const Llama3Rope& rope) {
  std::vector<double> factors;
  for (std::int64_t i = 0; i < pairs.half; ++i) {
    const double power = -static_cast<double>(i) / static_cast<double>(pairs.half);
    const double turns = rope.original_context * math::pow(pairs.base, power) / kTwoPi;
    const double kept = (turns - rope.low_frequency_factor) /
                        (rope.high_frequency_factor - rope.low_frequency_factor);
    const double share = std::clamp(kept, 0.0, 1.0);
    factors.push_back((1 - share) / rope.factor + share);
  }
  return factors;
}

}  // namespace orrery
