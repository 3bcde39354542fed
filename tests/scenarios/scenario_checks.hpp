// scenarios/scenario_checks.hpp - invariants of every history, whatever the policy.
//
// One for a scenario. Applies each event to a state of its own, which gets nothing else: so events
// alone carry the state. Breaches are collected in words.
#pragma once

#include <string>
#include <vector>

#include "control/state/state.hpp"

namespace orrery {

class ScenarioChecks {
 public:
  /// From `quiet_from` on, no job may be stopped in favour of another, moved or resized.
  ScenarioChecks(const ControlSetup& setup, Instant quiet_from)
      : state_(setup), quiet_from_(quiet_from) {}

  [[nodiscard]] const State& state() const { return state_; }

  void take(Instant at, const Event& event);
  /// Called before virtual time advances: no power domain is above its limit, the state is sound.
  void instant_ends();
  /// Called at the end: the core's own state must equal this one.
  void ends(const State& state);

  [[nodiscard]] const std::vector<std::string>& broken() const { return broken_; }

 private:
  /// Checks that nodes are ready, devices free, gangs whole, inside their level, and caps kept.
  void starts(const JobStarted& event);
  void gang_fits(const JobRequest& job, const PlacedGang& gang);
  /// Checks the limits of the job's tenants.
  void started(const JobStarted& event);
  /// Checks that no job is preempted against its terms or its tenant's guarantee.
  void stops(const JobStopping& event);
  void broken(std::string what) { broken_.push_back(std::move(what)); }

  State state_;
  Instant quiet_from_;
  std::vector<std::string> broken_;
};

}  // namespace orrery
