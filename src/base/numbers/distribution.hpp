// base/numbers/distribution.hpp - random variates with the same bits on every CPU and standard
// library.
//
// Plain values: aggregates to be written with designated initialisers, freely copied and shared;
// all state lives in the Rng handed to sample(). They do not check their parameters: the code that
// reads them from outside does. Built on base/numbers/math, never on the distributions of the
// standard library, whose algorithms differ between implementations.
#pragma once

#include <cstdint>

#include "base/numbers/rng.hpp"

namespace orrery {

/// Uniform on [low, high]; `high` itself only through rounding. Precondition: finite, low <= high.
struct Uniform {
  double low = 0.0;
  double high = 1.0;
  [[nodiscard]] double sample(Rng& rng) const;
};

/// Time between events that come `rate` times per unit. Mean 1/rate. Precondition: rate > 0. One
/// draw.
struct Exponential {
  double rate = 1.0;
  [[nodiscard]] double sample(Rng& rng) const;
};

/// P(X > x) = exp(-(x/scale)^shape): life times, with a falling failure rate for shape < 1 and a
/// rising one for shape > 1. Mean scale * Gamma(1 + 1/shape). Precondition: both > 0. One draw, by
/// inversion.
struct Weibull {
  double shape = 1.0;
  double scale = 1.0;
  [[nodiscard]] double sample(Rng& rng) const;
};

/// Gaussian, by the polar method (G. Marsaglia and T. A. Bray, "A convenient method for generating
/// normal variables", SIAM Review 6(3), 1964), the second variate of a pair dropped so that no
/// state is kept. Precondition: deviation >= 0. About 2.5 draws.
struct Normal {
  double mean = 0.0;
  double deviation = 1.0;
  [[nodiscard]] double sample(Rng& rng) const;
};

/// exp of a Normal{mu, sigma}: `mu` and `sigma` are of the logarithm. Median exp(mu), mean
/// exp(mu + sigma^2/2). Precondition: sigma >= 0.
struct Lognormal {
  double mu = 0.0;
  double sigma = 1.0;
  [[nodiscard]] double sample(Rng& rng) const;
};

/// Mean shape * scale, coefficient of variation 1 / sqrt(shape): times between arrivals that come
/// in bursts, for shape < 1. By rejection (G. Marsaglia and W. W. Tsang, "A simple method for
/// generating gamma variables", ACM TOMS 26(3), 2000). Precondition: both > 0. About four draws.
struct Gamma {
  double shape = 1.0;
  double scale = 1.0;
  [[nodiscard]] double sample(Rng& rng) const;
};

/// Ranks 1..n with P(k) proportional to k^-exponent, by rejection-inversion (W. Hoermann and
/// G. Derflinger, "Rejection-inversion to generate variates from monotone discrete distributions",
/// ACM TOMACS 6(3), 1996). O(1) time and space for every n; about 1.1 draws a sample.
class Zipf {
 public:
  struct Parameters {
    std::uint64_t n = 1;    // 1 <= n <= 2^50
    double exponent = 1.0;  // >= 0; 0 is uniform
  };

  explicit Zipf(const Parameters& parameters);
  [[nodiscard]] std::uint64_t sample(Rng& rng) const;

 private:
  [[nodiscard]] double density(double x) const;
  [[nodiscard]] double integral(double x) const;
  [[nodiscard]] double integral_inverse(double y) const;

  double n_;
  double exponent_;
  double area_first_;     // lower end of the sampled area: the bar of rank 1 is cut to its weight
  double area_last_;      // upper end, the integral up to n + 1/2
  double always_within_;  // a rank this close above the inverse is accepted without evaluating more
};

}  // namespace orrery
