// twin/nice_step.hpp - the 1, 2, 5 of the decades, for ticks.
#pragma once

#include <cstddef>

namespace orrery {

/// The least of 1, 2, 5 x 10^k that parts `span` at most `count_max` times. Precondition: span > 0.
[[nodiscard]] double nice_step(double span, std::size_t count_max);

}  // namespace orrery
