// scheduler/gang_terms.hpp - how a gang fares where it is placed.
#pragma once

#include <cstdint>
#include <optional>

#include "base/quantity.hpp"
#include "base/time.hpp"

namespace orrery {

struct GangTerms {
  std::optional<Duration> length;  ///< of what was left to do; none: until it is stopped
  double ratio = 1;                ///< of a step here to the plan's canonical one
  double clock = 1;                ///< of the full one
  Watts draw;                      ///< of one device at that clock, with its share of the node
  std::uint32_t plan = 0;          ///< position in the entry of the plan table
};

}  // namespace orrery
