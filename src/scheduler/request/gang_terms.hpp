// scheduler/request/gang_terms.hpp - run time, clock and power of a gang where it is placed.
#pragma once

#include <cstdint>
#include <optional>

#include "base/quantity.hpp"
#include "base/time.hpp"

namespace orrery {

struct GangTerms {
  std::optional<Duration> length;  ///< time for the work that was left; none: until it is stopped
  double ratio = 1;                ///< step time here over the plan's canonical one
  double clock = 1;                ///< fraction of the full clock
  Watts draw;                      ///< draw of one device at that clock, with its share of the node
  std::uint32_t plan = 0;          ///< position in the entry of the plan table
};

}  // namespace orrery
