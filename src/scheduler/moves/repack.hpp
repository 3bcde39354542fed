// scheduler/moves/repack.hpp - a proposal that empties the least full racks or scale-up domains of
// a fleet by moving their gangs into free devices elsewhere.
//
// Pure, greedy: places are emptied from the least full up; a place is emptied completely or left as
// it is, and only where that is worth its moves. Gangs go where they fit best outside the places
// that are, or are to become, whole.
#pragma once

#include "scheduler/moves/defragment.hpp"

namespace orrery {

struct RepackTerms {
  TopologyLevel level = TopologyLevel::kRack;  ///< level of the places to empty
  std::int64_t gain_per_device = 0;  ///< for a place that becomes whole, in the unit of the costs
  std::uint32_t wanted = std::numeric_limits<std::uint32_t>::max();  ///< maximum number of whole
                                                                     ///< places that are useful
};

/// Invariants: each move's target is free once the moves before it are made; no gang moves twice; a
/// place that was whole stays whole; what each emptied place gains exceeds what its moves cost.
struct RepackPlan {
  std::vector<GangMove> moves;  ///< in the order of execution
  std::int64_t gain = 0;
  std::int64_t cost = 0;
  std::uint32_t whole_before = 0;  ///< number of places with every device ready and free
  std::uint32_t whole_after = 0;
};

/// Precondition: `movable` gangs hold their devices in the view; the placer is of its topology.
/// Repeated on its own result it terminates: every plan leaves more places whole. Cost: O(nodes +
/// gangs moved x a placement), at most two attempts a place.
[[nodiscard]] RepackPlan repack(const FleetView& view, std::span<const MovableGang> movable,
                                const RepackTerms& terms, Placer& placer);

}  // namespace orrery
