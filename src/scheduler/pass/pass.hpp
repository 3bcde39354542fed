// scheduler/pass/pass.hpp - one pass of the scheduler over a situation: which steps it takes, in
// which order.
//
// Scheduler::decide makes a pass and uses it once. The steps share a PassContext, so a step sees
// what earlier ones decided.
#pragma once

#include "scheduler/clocks/clock_steps.hpp"
#include "scheduler/pass/pass_context.hpp"
#include "scheduler/pass/pass_memory.hpp"
#include "scheduler/pass/start_search.hpp"

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
  /// Looks for better places and higher clocks for running jobs. Precondition: the context holds
  /// its invariants.
  void improve();
  /// Delays starts so that the power draw rises in steps.
  void stagger_starts();

  PassMemory& memory_;
  PassContext context_;
  StartSearch search_;
  ClockSteps clocks_;
};

}  // namespace orrery
