// scheduler/request/placed_gang.hpp - one gang of a job with the devices chosen for it.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "scheduler/pass/taking.hpp"

namespace orrery {

struct PlacedGang {
  std::uint32_t role = 0;
  std::uint32_t option = 0;  ///< option of the role
  Allocation allocation;
  HostNeeds host;  ///< needs of one rank
};

template <class Fleet>
void take(Fleet& fleet, std::span<const PlacedGang> gangs) {
  for (const PlacedGang& gang : gangs) take(fleet, gang.allocation, gang.host);
}

/// Gives back in the opposite order, so that devices which two gangs share end up as they were.
template <class Fleet>
void give_back(Fleet& fleet, std::span<const PlacedGang> gangs) {
  for (auto gang = gangs.rbegin(); gang != gangs.rend(); ++gang) {
    give_back(fleet, gang->allocation, gang->host);
  }
}

}  // namespace orrery
