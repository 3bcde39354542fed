// perf/range_check.hpp - refuses a figure outside the range a formula is good for, NaN included.
#pragma once

#include <string_view>

#include "base/error.hpp"

namespace orrery {

/// Both ends belong to it.
struct Range {
  double low = 0;
  double high = 0;
};

/// Largest figure a formula is asked to work with: far above anything real, far below overflow.
inline constexpr double kFigureMax = 1e30;
/// Smallest figure that may stand below a fraction bar.
inline constexpr double kFigureMin = 1e-30;

inline constexpr Range kNotNegative{0, kFigureMax};
inline constexpr Range kPositive{kFigureMin, kFigureMax};
inline constexpr Range kFraction{0, 1};

/// An input error "WHAT is VALUE, expected LOW to HIGH" unless `value` lies in `range`.
[[nodiscard]] Status check_range(std::string_view what, double value, Range range);

}  // namespace orrery
