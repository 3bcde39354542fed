// scheduler/pass/queue_walk.hpp - goes through the waiting jobs in the order of the policy: each
// starts where it fits, gets room from others, or waits.
//
// Belongs to one pass. Invariant: a job that finds no room now finds none later in the pass, unless
// jobs leave for it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/clocks/clock_steps.hpp"
#include "scheduler/forecast/waiting_queue.hpp"
#include "scheduler/pass/refusal_memo.hpp"
#include "scheduler/pass/start_search.hpp"
#include "scheduler/preempt/room_making.hpp"

namespace orrery {

/// What a scheduler keeps for the walks of its passes.
struct QueueMemory {
  void forget() {
    queue.forget();
    refusals.forget();
    room.leaving.yielders.forget();
  }

  WaitingQueue queue;
  RefusalMemo refusals;
  RoomMemory room;
};

class QueueWalk {
 public:
  QueueWalk(PassContext& pass, StartSearch& search, ClockSteps& clocks, QueueMemory& memory);

  /// Whether jobs behind a job are considered.
  enum class Queue { kGoesOn, kStops };

  /// Considers the jobs in the order of the whole queue.
  void run_in_order();
  /// Considers services first, then all other jobs. In each part the tenants take turns in fair
  /// order, and a tenant's jobs follow the order of the queue: by descending rank, then by
  /// Policy::inside.
  void run_fair();
  /// Starts a job, makes room for it or lets it wait.
  [[nodiscard]] Queue consider(const QueuedJob& queued);

  [[nodiscard]] const WaitingQueue& queue() const { return queue_; }
  [[nodiscard]] DeviceTaking& taking() { return room_.taking(); }

 private:
  enum class Services : std::uint8_t { kNone, kOnly };
  /// Whether quotas let the jobs of a group have each of their options.
  struct Group {
    std::uint64_t under = UsageEdits::kNever;  ///< UsageEdits::changes() for which it holds
    bool may_take_any = false;
  };

  Queue run_fair_over(Services services);
  void note_held_back(std::span<const QueuedJob> behind);
  [[nodiscard]] const Refusal* remembered(const QueuedJob& queued);
  void remember(const QueuedJob& queued, const StartRefusal& refused);
  /// UsageEdits::may_take_any() of the job's request, cached for each group until the usage
  /// changes.
  [[nodiscard]] bool may_take_any(const QueuedJob& queued);
  [[nodiscard]] const WaitingJob& job_of(const QueuedJob& queued) const {
    return s_.waiting[queued.at];
  }

  PassContext& pass_;
  const Situation& s_;
  const Policy& policy_;
  StartSearch& search_;
  ClockSteps& clocks_;
  const WaitingQueue& queue_;
  RefusalMemo& refusals_;
  RoomMaking room_;
  std::vector<Group> groups_;  ///< by QueuedJob::group
};

}  // namespace orrery
