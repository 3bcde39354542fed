#include "report/plot/nice_step.hpp"

#include <algorithm>
#include <cmath>

#include "base/numbers/math.hpp"

namespace orrery {
namespace {

constexpr double kLn10 = 2.302585092994045684;

}  // namespace

double nice_step(double span, std::size_t count_max) {
  const double least = span / static_cast<double>(std::max<std::size_t>(count_max, 1));
  const double decade = math::pow(10, std::floor(math::log(least) / kLn10));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (decade * factor >= least * (1 - 1e-9)) return decade * factor;
  }
  return decade * 10;
}

}  // namespace orrery
