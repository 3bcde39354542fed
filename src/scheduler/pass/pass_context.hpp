// scheduler/pass/pass_context.hpp - what the steps of one pass share: its inputs, what it has
// changed so far, and its result.
//
// A Pass makes one. Steps enter what they decide into the parts below, where later steps see it.
// Invariants, which hold except after CommonOrder::replan_all(): it leaves the fleet and the usage
// as it plans them, so no step that chooses devices may follow it.
// 1. What a started job holds is in `fleet`, `usage` and `power`, and its decision in `result`.
// 2. A running job that the pass has stopped, moved or resized is not considered again.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/pass/pass_fleet.hpp"
#include "scheduler/pass/usage_edits.hpp"
#include "scheduler/power/planned_power.hpp"
#include "scheduler/scheduler.hpp"

namespace orrery {

/// How a job can start, or go on.
struct PlannedStart {
  std::vector<PlacedGang> gangs;
  std::vector<GangTerms> terms;  ///< of each gang
  std::optional<Price> price;
  std::optional<Duration> length;  ///< expected run time; none: until it is stopped
};

/// A job that the pass started.
struct StartedJob {
  const WaitingJob* job;
  std::size_t decision;  ///< position of its decision
  Instant end;           ///< expected when it was started
};

class PassContext {
 public:
  PassContext(const Situation& situation_now, const Policy& policy_now, PassKind pass_kind,
              PassFleet& pass_fleet);

  const Situation& situation;
  const Policy& policy;
  const PassKind kind;
  PassFleet& fleet;
  UsageEdits usage;
  PlannedPower power;
  PassResult result;

  [[nodiscard]] Instant end_of(const PlannedStart& start) const {
    return start.length ? situation.now + *start.length : Instant::max();
  }

  void start(const WaitingJob& job, PlannedStart start);
  void wait(const WaitingJob& job, const Refusal& refusal);
  /// Limits the validity of the pass: from `time` on its decisions may differ.
  void hold_until(Instant time) { result.holds_until = std::min(result.holds_until, time); }
  /// A running job stops; `in_favour_of` none: because of a power limit.
  void preempt(std::uint32_t running, JobId in_favour_of);
  /// Inserts decisions before those from position `at` on.
  void insert_decisions(std::size_t at, std::span<const Decision> decisions);

  /// Keeps devices for a job that starts later; the reservation is reported if it is in `result`.
  void keep(const Reservation& reservation);
  /// Keeps devices for a job from all others, from now on, and reports the reservation.
  void reserve_now(Reservation reservation);
  /// The queue passes over a job that has a reservation.
  void pass_over(JobId job);
  [[nodiscard]] bool is_passed_over(JobId job) const {
    return std::binary_search(passed_over_.begin(), passed_over_.end(), job);
  }

  /// Whether this pass has decided on a running job.
  [[nodiscard]] bool is_decided(std::uint32_t running) const { return decided_[running] != 0; }
  void set_decided(std::uint32_t running) { decided_[running] = 1; }

  [[nodiscard]] std::span<const StartedJob> starts() const { return starts_; }
  [[nodiscard]] StartJob& decision_of(const StartedJob& start) {
    return std::get<StartJob>(result.decisions[start.decision]);
  }
  /// Jobs that lack nothing but room, in the order of the queue.
  [[nodiscard]] std::span<const WaitingJob* const> blocked() const { return blocked_; }

 private:
  std::vector<StartedJob> starts_;
  std::vector<char> decided_;       ///< by running job
  std::vector<JobId> passed_over_;  ///< ascending
  std::vector<const WaitingJob*> blocked_;
};

}  // namespace orrery
