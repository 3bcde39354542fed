// scenarios/scenario_checks.hpp - what every decision must keep to, whatever the policy.
//
// One for a scenario; told of each decision before it is carried out. Breaches are collected in
// words.
#pragma once

#include <string>
#include <vector>

#include "scheduler/decision.hpp"
#include "scheduler/policy.hpp"
#include "tests/scenarios/scenario_world.hpp"

namespace orrery {

class ScenarioChecks {
 public:
  ScenarioChecks(const ScenarioWorld& world, const Policy& policy)
      : world_(world), policy_(policy) {}

  /// Nodes ready, devices free, gangs whole, inside their level, caps kept.
  void starts(const JobRequest& job, std::span<const PlacedGang> gangs,
              std::span<const GangTerms> terms);
  /// After it was entered: limits of its tenants.
  void started(const JobRequest& job);
  /// Of the victims of one pass: none preempted against its will or its tenant's guarantee.
  void stops(const RunningJob& victim, const JobRequest* in_favour_of);
  /// After a pass whose victims have left: no domain is above its limit.
  void power_holds();
  /// What is stopping counts as gone.
  void pass_begins(std::span<const RunningJob> running);

  void broken(std::string what) { broken_.push_back(std::move(what)); }
  [[nodiscard]] std::vector<std::string> take() { return std::move(broken_); }

 private:
  void gang_fits(const JobRequest& job, const PlacedGang& gang);

  const ScenarioWorld& world_;
  const Policy& policy_;
  void leaves(const RunningJob& job);

  std::optional<TenantUsage> gone_;  ///< usage without victims, of this pass and before
  std::vector<std::string> broken_;
};

}  // namespace orrery
