#include "runtime/trainer/gradient_norm.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "base/assert.hpp"
#include "runtime/kernels/kernels.hpp"

namespace orrery {

void block_squares(std::span<const float> values, std::span<double> sums) {
  ORRERY_ASSERT(sums.size() == norm_blocks(values.size()), "a sum for each block");
  const KernelTable& table = kernels();
  for (std::size_t block = 0; block < sums.size(); ++block) {
    const std::size_t begin = block * kNormBlock;
    const std::size_t count = std::min(kNormBlock, values.size() - begin);
    sums[block] = table.squares(values.data() + begin, static_cast<std::int64_t>(count));
  }
}

double tree_sum(std::span<const double> terms) {
  if (terms.empty()) return 0;
  if (terms.size() == 1) return terms[0];
  const std::size_t half = std::bit_floor(terms.size() - 1);
  return tree_sum(terms.first(half)) + tree_sum(terms.subspan(half));
}

double gradient_norm(std::span<const float> gradient) {
  std::vector<double> sums(norm_blocks(gradient.size()));
  block_squares(gradient, sums);
  return std::sqrt(tree_sum(sums));
}

double clip_factor(double norm, double limit) {
  return limit > 0 && norm > limit ? limit / norm : 1;
}

}  // namespace orrery
