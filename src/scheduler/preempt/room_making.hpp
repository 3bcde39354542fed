// scheduler/preempt/room_making.hpp - what a pass does for a job that was refused: other jobs leave
// or shrink for it, or it gets a reservation.
//
// Belongs to one pass that goes through the queue. The ways are tried in order: preemption by right
// and rank, surplus of elastic jobs, overtaking.
#pragma once

#include <cstddef>

#include "scheduler/forecast/new_reservations.hpp"
#include "scheduler/preempt/overtaking.hpp"
#include "scheduler/preempt/preemption_by_rank.hpp"
#include "scheduler/preempt/surplus_taking.hpp"

namespace orrery {

/// What a scheduler keeps for its passes.
struct RoomMemory {
  LeavingMemory leaving;
  PreemptionScratch plans;
};

class RoomMaking {
 public:
  /// `askers`: WaitingQueue::askers().
  RoomMaking(PassContext& pass, StartSearch& search, RoomMemory& memory, std::size_t askers);

  /// Whether the job has room now: it started, or starts once its victims have left.
  bool make_room(const QueuedJob& queued, const Refusal& refusal);
  /// Makes a reservation for a job that keeps waiting, if it needs one.
  void reserve(const QueuedJob& queued, const Refusal& refusal) {
    reservations_.reserve(queued, refusal);
  }
  [[nodiscard]] DeviceTaking& taking() { return taking_; }

 private:
  const Policy& policy_;
  LeavingJobs leaving_;
  DeviceTaking taking_;
  PreemptionByRank by_rank_;
  SurplusTaking surplus_;
  Overtaking overtaking_;
  NewReservations reservations_;
};

}  // namespace orrery
