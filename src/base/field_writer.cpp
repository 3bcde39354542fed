#include "base/field_writer.hpp"

#include <cmath>

namespace orrery {

Json json_number(double value) {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (value == std::floor(value) && std::abs(value) <= kExact) {
    return Json(static_cast<std::int64_t>(value));
  }
  return Json(value);
}

}  // namespace orrery
