// perf/straggler.hpp - how much later than the mean the last of n ranks is.
//
// A synchronous step ends with its slowest rank. With independent normal jitter of standard
// deviation sigma the wait is sigma x E[max of n standard normals], which grows as sqrt(2 ln n).
#pragma once

#include "base/error.hpp"
#include "base/quantity.hpp"

namespace orrery {

/// E[max of n independent standard normals], n >= 1 and real: 0 at 1, 0.5642 at 2, 3.9714 at
/// 16,384. Up to 2^20 the expectations at powers of two (numerical integration of n x phi(x)
/// Phi(x)^(n-1)), linear in log n between them: within 1.3 % at n = 3, 0.3 % from 16 on. Beyond,
/// the growth of the extreme-value (Gumbel) limit: b + 0.5772/a, a = sqrt(2 ln n), b = a - (ln ln n
/// + ln 4 pi)/(2a) (E. J. Gumbel, Statistics of Extremes, 1958; H. Cramer, Mathematical Methods of
/// Statistics, 1946, section 28.6). Strictly increasing; below sqrt(2 ln n). Precondition: 1 <= n
/// <= 1e30.
[[nodiscard]] double expected_max_of_normals(double n);

}  // namespace orrery
