#include "perf/range_check.hpp"

#include <fmt/format.h>

namespace orrery {

Status check_range(std::string_view what, double value, Range range) {
  if (range.low <= value && value <= range.high) return {};
  return input_error(
      {}, fmt::format("{} is {}, expected {} to {}", what, value, range.low, range.high));
}

}  // namespace orrery
