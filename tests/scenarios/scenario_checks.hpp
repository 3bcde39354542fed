// scenarios/scenario_checks.hpp - what every history must keep to, whatever the policy.
//
// One for a scenario. Takes up each event in a state of its own, which is told of nothing else: so
// events alone carry the state. Breaches are collected in words.
#pragma once

#include <string>
#include <vector>

#include "control/state.hpp"

namespace orrery {

class ScenarioChecks {
 public:
  /// From `quiet_from` on, no job may be stopped in favour of another, moved or resized.
  ScenarioChecks(const ControlSetup& setup, Instant quiet_from)
      : state_(setup), quiet_from_(quiet_from) {}

  [[nodiscard]] const State& state() const { return state_; }

  void take(Instant at, const Event& event);
  /// Virtual time goes on: no power domain is above its limit, the state is sound.
  void instant_ends();
  /// The core's own state must be this one.
  void ends(const State& state);

  [[nodiscard]] const std::vector<std::string>& broken() const { return broken_; }

 private:
  /// Nodes ready, devices free, gangs whole, inside their level, caps kept.
  void starts(const JobStarted& event);
  void gang_fits(const JobRequest& job, const PlacedGang& gang);
  /// Limits of its tenants.
  void started(const JobStarted& event);
  /// None preempted against its will or its tenant's guarantee.
  void stops(const JobStopping& event);
  void broken(std::string what) { broken_.push_back(std::move(what)); }

  State state_;
  Instant quiet_from_;
  std::vector<std::string> broken_;
};

}  // namespace orrery
