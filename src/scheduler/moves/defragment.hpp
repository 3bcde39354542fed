// scheduler/moves/defragment.hpp - which running gangs to move so that free devices lie together.
//
// Pure: the caller supplies which gangs may be moved, what a move costs and what is gained. The
// answer is a proposal; nothing moves. A plan is made like a preemption
// (scheduler/preempt/preemption.hpp), with the objection that each victim must find another place.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/place/placer.hpp"
#include "scheduler/preempt/preemption.hpp"

namespace orrery {

/// A running gang that may be moved.
struct MovableGang {
  HeldGang held;
  const GangRequest* request = nullptr;
  std::int64_t cost = 0;  ///< cost of a move: checkpoint, restart and work lost, e.g. device-ms
};

/// A job or place that does not fit because the free devices are scattered.
struct RoomGoal {
  PlaceTry place;
  std::uint32_t devices = 1;  ///< devices of the gangs that `place` places
  std::int64_t gain = 0;      ///< gain of placing it, in the unit of the costs
};

struct GangMove {
  std::uint32_t gang = 0;  ///< position among the movable gangs
  Allocation to;
};

/// Invariants: gain > cost; each move's target is free once the moves before it are made; what the
/// goal gets is free after the last.
struct RoomPlan {
  std::uint32_t goal = 0;       ///< position among the goals
  std::vector<GangMove> moves;  ///< in this order
  std::vector<PlacedGang> gangs;
  std::int64_t gain = 0;
  std::int64_t cost = 0;
};

/// Plans for the goals that are worth their moves, in the goals' order, each on top of the plans
/// before it; no gang moves twice. Goals that fit without a move get their place and need no plan.
/// The placer is of the view's topology. Cost: that of plan_preemption a goal.
[[nodiscard]] std::vector<RoomPlan> make_room(const FleetView& view,
                                              std::span<const MovableGang> movable,
                                              std::span<const RoomGoal> goals, Placer& placer);

}  // namespace orrery
