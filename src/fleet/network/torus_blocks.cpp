#include "fleet/network/torus_blocks.hpp"

#include <numeric>

namespace orrery {

std::vector<int> torus_of_blocks(int blocks, const std::vector<int>& block) {
  std::vector<int> best;
  const auto offer = [&](std::vector<int> sides) {
    for (std::size_t i = 0; i < sides.size(); ++i) sides[i] *= block[i];
    const auto sum = [](const std::vector<int>& of) { return std::reduce(of.begin(), of.end()); };
    if (best.empty() || sum(sides) < sum(best)) best = std::move(sides);
  };
  for (int x = 1; x <= blocks; ++x) {
    if (blocks % x != 0) continue;
    const int rest = blocks / x;
    if (block.size() == 2) {
      offer({x, rest});
      continue;
    }
    for (int y = 1; y <= rest; ++y) {
      if (rest % y == 0) offer({x, y, rest / y});
    }
  }
  return best;
}

}  // namespace orrery
