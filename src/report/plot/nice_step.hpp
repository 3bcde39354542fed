// report/plot/nice_step.hpp - tick steps of 1, 2 or 5 times a power of ten.
#pragma once

#include <cstddef>

namespace orrery {

/// The least of 1, 2, 5 x 10^k that divides `span` into at most `count_max` parts. Precondition:
/// span > 0.
[[nodiscard]] double nice_step(double span, std::size_t count_max);

}  // namespace orrery
