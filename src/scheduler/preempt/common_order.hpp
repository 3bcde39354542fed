// scheduler/preempt/common_order.hpp - policies that put waiting and running jobs in one order.
//
// Belongs to one pass. A waiting job may take the devices of jobs that come behind it in the order.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/pass/queue_walk.hpp"
#include "scheduler/pass/start_search.hpp"

namespace orrery {

class CommonOrder {
 public:
  CommonOrder(PassContext& pass, StartSearch& search);

  /// PreemptionRule::kAnew: plans as if no job ran. Each job in the order gets the place it would
  /// get then. A running job that gets another place or none leaves first; waiting jobs start once
  /// these have left.
  void replan_all();
  /// PreemptionRule::kByOrder: waiting jobs start in the order, and preempt jobs that come behind
  /// them, the last first.
  void preempt_later(QueueWalk& walk);

 private:
  struct Entry {
    OrderKey key;
    std::uint32_t at = 0;  ///< position among the waiting or the running
    bool running = false;
  };

  [[nodiscard]] std::vector<Entry> entries() const;
  /// Running jobs that the job at `place` in the order may preempt; `places`: by running job.
  [[nodiscard]] std::vector<std::uint32_t> later_than(
      std::uint32_t place, const std::vector<std::uint32_t>& places) const;

  PassContext& pass_;
  const Situation& s_;
  const Policy& policy_;
  StartSearch& search_;
};

}  // namespace orrery
