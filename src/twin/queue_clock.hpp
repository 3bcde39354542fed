// twin/queue_clock.hpp - how long each job of a simulation has queued.
//
// Looks on at the events of a run. A job queues while it wants to run and does not: before its
// first start and after each stop it comes back from, but not while it is held, waits for other
// jobs or sits out a backoff. Owned by the Simulation. Cost: O(1) an event.
#pragma once

#include <span>
#include <vector>

#include "control/event.hpp"
#include "control/state.hpp"

namespace orrery {

class QueueClock {
 public:
  /// After the events were applied to the state.
  void look(std::span<const Event> events, const State& state, Instant now);

  [[nodiscard]] Duration queued(JobId job, Instant now) const;

 private:
  struct Times {
    Duration before;                 ///< earlier stays in the queue
    Instant since = Instant::max();  ///< of the present one; max: it does not queue
  };
  void look_at(JobId job, const State& state, Instant now);

  std::vector<Times> times_;  ///< by job
};

}  // namespace orrery
