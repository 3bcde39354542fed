// scheduler/pass/pass.hpp - one pass of the scheduler over a situation: which steps it takes, in
// which order.
//
// Scheduler::decide makes a pass and uses it once. The steps share a PassContext: what one decides,
// later ones see.
#pragma once

#include "scheduler/pass/pass_context.hpp"
#include "scheduler/pass/pass_memory.hpp"
#include "scheduler/pass/start_search.hpp"
#include "scheduler/power/clock_steps.hpp"

namespace orrery {

class Pass {
 public:
  Pass(const Situation& situation, const Policy& policy, PassKind kind, PassMemory& memory);

  [[nodiscard]] PassResult run();

 private:
  /// Whether the result may hold for longer than an instant.
  [[nodiscard]] bool may_hold() const;
  /// Starts waiting jobs, in the way of the policy.
  void start_waiting();
  /// Looks for better places for running jobs.
  void improve();
  /// Delays starts so that the power draw rises in steps.
  void stagger_starts();

  PassMemory& memory_;
  PassContext context_;
  StartSearch search_;
  ClockSteps clocks_;
};

}  // namespace orrery
