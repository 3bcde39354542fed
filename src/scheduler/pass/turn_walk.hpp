// scheduler/pass/turn_walk.hpp - goes through the waiting jobs where jobs take turns in rounds
// (PreemptionRule::kRounds).
//
// Belongs to one pass. Full passes choose the jobs that have a turn; passes between them fill what
// comes free. Jobs that take no turns go first and keep their devices.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "scheduler/clocks/clock_steps.hpp"
#include "scheduler/pass/start_search.hpp"
#include "scheduler/rounds/round_turns.hpp"

namespace orrery {

class TurnWalk {
 public:
  TurnWalk(PassContext& pass, StartSearch& search, ClockSteps& clocks, ThroughputShares& shares);

  void run();

 private:
  /// The waiting jobs that could not be placed, with the reason.
  using Refusals = std::map<JobId, Refusal>;

  /// Services first, then jobs of several gangs and shares of devices, each in the order of the
  /// policy.
  [[nodiscard]] std::vector<const WaitingJob*> without_turns() const;
  /// Running jobs that may not be stopped are left out.
  [[nodiscard]] std::vector<RoundJob> round_jobs() const;
  /// Starts waiting jobs on free devices, from the first turn on.
  void fill(std::span<const RoundJob> jobs);
  void wait_for_turns(const Refusals& refusals);

  PassContext& pass_;
  const Situation& s_;
  const Policy& policy_;
  StartSearch& search_;
  ClockSteps& clocks_;
  ThroughputShares& shares_;
};

}  // namespace orrery
