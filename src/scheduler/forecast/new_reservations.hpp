// scheduler/forecast/new_reservations.hpp - reservations for jobs that cannot start yet (backfill).
//
// Belongs to one pass, and makes no reservation unless the pass has opened its timeline.
// Reservations go to the first job of the queue, or to the first jobs that are large or would be
// late without one: other small jobs find room without.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/preempt/overtaking.hpp"

namespace orrery {

/// Whether a pass makes reservations.
[[nodiscard]] bool makes_reservations(const Policy& policy, PassKind kind);

class NewReservations {
 public:
  NewReservations(PassContext& pass, StartSearch& search, LeavingJobs& leaving,
                  Overtaking& overtaking);

  /// Makes a reservation for a job that was refused, if it needs one. Jobs come in the order of the
  /// queue.
  void reserve(const QueuedJob& queued, const Refusal& refusal);

 private:
  /// Whether new jobs like those that hold most devices now would overtake a job, or be overtaken.
  enum class Arrivals : std::uint8_t { kNeither, kOvertake, kAreOvertaken };

  [[nodiscard]] bool needs_one(const QueuedJob& queued);
  /// Whether a job would find room without the jobs of its tenant that it may overtake, now or once
  /// its aged service is low enough.
  [[nodiscard]] bool may_win_room(const QueuedJob& queued);
  [[nodiscard]] Arrivals arrivals_beside(const QueuedJob& queued) const;
  /// Whether a job finds room without those that it may overtake within `drain` and those that end
  /// within it.
  [[nodiscard]] bool wins_room_within(Duration drain, const QueuedJob& queued);

  PassContext& pass_;
  const Situation& s_;
  const Policy& policy_;
  StartSearch& search_;
  LeavingJobs& leaving_;
  Overtaking& overtaking_;
  std::vector<LeaverList> own_;  ///< by asker: jobs of its tenant that it may overtake now or later
  std::uint64_t needed_ = 0;     ///< jobs that keep a new reservation or need one
  std::uint64_t sought_ = 0;     ///< jobs for which a new reservation was sought
};

}  // namespace orrery
