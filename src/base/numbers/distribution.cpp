// base/numbers/distribution.cpp - variates by inversion and rejection on base/numbers/math.
#include "base/numbers/distribution.hpp"

#include <algorithm>
#include <cmath>

#include "base/assert.hpp"
#include "base/numbers/math.hpp"

namespace orrery {
namespace {

/// Exponential with mean 1, >= +0. 1 - uniform() is exact and in (0, 1].
double unit_exponential(Rng& rng) { return 0.0 - math::log(1.0 - rng.uniform()); }

/// (e^t - 1) / t, continuous at 0.
double expm1_ratio(double t) { return t == 0.0 ? 1.0 : math::expm1(t) / t; }

/// log(1 + t) / t, continuous at 0.
double log1p_ratio(double t) { return t == 0.0 ? 1.0 : math::log1p(t) / t; }

/// Gamma with scale 1. Precondition: shape >= 1.
double unit_gamma(double shape, Rng& rng) {
  const double d = shape - 1.0 / 3.0;
  const double c = 1.0 / std::sqrt(9.0 * d);
  for (;;) {
    const double x = Normal{}.sample(rng);
    const double root = 1.0 + c * x;
    if (root <= 0.0) continue;
    const double v = root * root * root;
    const double u = 1.0 - rng.uniform();
    if (math::log(u) < 0.5 * x * x + d - d * v + d * math::log(v)) return d * v;
  }
}

}  // namespace

double Uniform::sample(Rng& rng) const { return low + (high - low) * rng.uniform(); }

double Exponential::sample(Rng& rng) const { return unit_exponential(rng) / rate; }

double Weibull::sample(Rng& rng) const {
  return scale * math::pow(unit_exponential(rng), 1.0 / shape);
}

double Normal::sample(Rng& rng) const {
  for (;;) {
    const double x = 2.0 * rng.uniform() - 1.0;
    const double y = 2.0 * rng.uniform() - 1.0;
    const double square = x * x + y * y;
    if (square < 1.0 && square > 0.0) {
      return mean + deviation * (x * std::sqrt(-2.0 * math::log(square) / square));
    }
  }
}

double Lognormal::sample(Rng& rng) const {
  return math::exp(Normal{.mean = mu, .deviation = sigma}.sample(rng));
}

double Gamma::sample(Rng& rng) const {
  if (shape >= 1.0) return scale * unit_gamma(shape, rng);
  // A variate of shape + 1 times U^(1/shape) has this shape.
  const double more = unit_gamma(shape + 1.0, rng);
  return scale * more * math::pow(1.0 - rng.uniform(), 1.0 / shape);
}

Zipf::Zipf(const Parameters& parameters)
    : n_(static_cast<double>(parameters.n)),
      exponent_(parameters.exponent),
      area_first_(integral(1.5) - 1.0),
      area_last_(integral(n_ + 0.5)),
      always_within_(2.0 - integral_inverse(integral(2.5) - density(2.0))) {
  ORRERY_ASSERT(parameters.n >= 1, "a Zipf distribution needs a rank to draw");
  ORRERY_ASSERT(parameters.exponent >= 0.0, "rejection-inversion needs falling weights");
}

/// x^-exponent.
double Zipf::density(double x) const { return math::exp(-exponent_ * math::log(x)); }

/// The integral of density() from 1 to x: (x^(1-exponent) - 1) / (1-exponent), or log x at
/// exponent 1.
double Zipf::integral(double x) const {
  const double log_x = math::log(x);
  return log_x * expm1_ratio((1.0 - exponent_) * log_x);
}

/// The x with integral(x) = y; rounding can push the argument past the pole at -1, hence the bound.
double Zipf::integral_inverse(double y) const {
  const double t = std::max(-1.0, y * (1.0 - exponent_));
  return math::exp(log1p_ratio(t) * y);
}

std::uint64_t Zipf::sample(Rng& rng) const {
  for (;;) {
    const double area = area_last_ + rng.uniform() * (area_first_ - area_last_);
    const double x = integral_inverse(area);
    const double rank = std::clamp(std::floor(x + 0.5), 1.0, n_);
    if (rank - x <= always_within_ || area >= integral(rank + 0.5) - density(rank)) {
      return static_cast<std::uint64_t>(rank);
    }
  }
}

}  // namespace orrery
