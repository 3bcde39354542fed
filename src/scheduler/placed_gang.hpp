// scheduler/placed_gang.hpp - one gang of a job with the devices chosen for it.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "scheduler/taking.hpp"

namespace orrery {

struct PlacedGang {
  std::uint32_t role = 0;
  std::uint32_t option = 0;  ///< of the role
  Allocation allocation;
  HostNeeds host;  ///< of one rank
};

template <class Fleet>
void take(Fleet& fleet, std::span<const PlacedGang> gangs) {
  for (const PlacedGang& gang : gangs) take(fleet, gang.allocation, gang.host);
}

/// In the opposite order, so that devices two gangs share come out as they were.
template <class Fleet>
void give_back(Fleet& fleet, std::span<const PlacedGang> gangs) {
  for (auto gang = gangs.rbegin(); gang != gangs.rend(); ++gang) {
    give_back(fleet, gang->allocation, gang->host);
  }
}

}  // namespace orrery
