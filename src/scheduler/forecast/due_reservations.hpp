// scheduler/forecast/due_reservations.hpp - reservations of earlier passes: those that are due
// serve their jobs alone.
//
// Belongs to one pass, which calls it before any other job is considered. A job starts where all
// reserved devices are free; its reservation is kept while jobs still leave the devices, and is
// given up when anything else is in the way. A job with nodes for it alone starts there first. A
// full pass finds later reservations anew; where jobs take turns in rounds, all are found at the
// next round.
#pragma once

#include "scheduler/clocks/clock_steps.hpp"
#include "scheduler/pass/start_search.hpp"

namespace orrery {

class DueReservations {
 public:
  DueReservations(PassContext& pass, StartSearch& search, ClockSteps& clocks);

  void serve();

 private:
  /// Starts waiting jobs on nodes that are for them alone. O(nodes) for each such job.
  void start_on_own_nodes();
  /// Keeps the devices of a job that moves, which starts there once it has stopped.
  void keep_for_mover(const Reservation& slot);
  [[nodiscard]] bool start_in(const WaitingJob& job, const Reservation& slot);

  PassContext& pass_;
  const Situation& s_;
  const Policy& policy_;
  StartSearch& search_;
  ClockSteps& clocks_;
};

}  // namespace orrery
