#include "perf/straggler.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/numbers/math.hpp"

namespace orrery {
namespace {

/// By log2 of n.
constexpr std::array<double, 21> kExpectedMax = {
    0.0,      0.56419,  1.029375, 1.4236,   1.765991, 2.069669, 2.343733,
    2.594597, 2.826863, 3.043903, 3.24824,  3.441799, 3.626082, 3.802279,
    3.971351, 4.134083, 4.291129, 4.443039, 4.590278, 4.733248, 4.872294};
constexpr double kLn2 = 0.6931471805599453;
constexpr double kLn4Pi = 2.5310242469692907;
constexpr double kEuler = 0.5772156649015329;

double gumbel_mean(double log_n) {
  const double a = std::sqrt(2 * log_n);
  return a - (math::log(log_n) + kLn4Pi) / (2 * a) + kEuler / a;
}

}  // namespace

double expected_max_of_normals(double n) {
  const double log_n = math::log(n);
  constexpr double kLast = kExpectedMax.size() - 1;
  const double at = log_n / kLn2;
  if (at >= kLast) {
    return kExpectedMax.back() + (gumbel_mean(log_n) - gumbel_mean(kLast * kLn2));
  }
  const auto below = static_cast<std::size_t>(at);
  const double part = at - static_cast<double>(below);
  return kExpectedMax[below] + part * (kExpectedMax[below + 1] - kExpectedMax[below]);
}

}  // namespace orrery
