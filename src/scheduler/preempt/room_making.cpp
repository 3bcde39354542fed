#include "scheduler/preempt/room_making.hpp"

namespace orrery {

RoomMaking::RoomMaking(PassContext& pass, StartSearch& search, RoomMemory& memory,
                       std::size_t askers)
    : policy_(pass.policy),
      leaving_(pass, search, memory.leaving, askers),
      taking_(pass, search, leaving_, memory.plans),
      by_rank_(pass, leaving_, taking_),
      surplus_(pass, leaving_, taking_),
      overtaking_(pass, search, leaving_, taking_),
      reservations_(pass, search, leaving_, overtaking_) {}

bool RoomMaking::make_room(const QueuedJob& queued, const Refusal& refusal) {
  return (policy_.preemption == PreemptionRule::kEntitled && by_rank_.make_room(queued, refusal)) ||
         surplus_.make_room(queued, refusal) || overtaking_.make_room(queued, refusal);
}

}  // namespace orrery
