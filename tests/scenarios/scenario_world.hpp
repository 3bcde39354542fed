// scenarios/scenario_world.hpp - what the jobs of a scenario meet: the fleet with its state, power,
// tenants, costs and the plans made so far.
//
// Made once a scenario by make(); stays where it is, since its parts point at each other. One
// thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fleet/fleet.hpp"
#include "scheduler/class_table.hpp"
#include "scheduler/plan_table.hpp"
#include "scheduler/resolve.hpp"
#include "scheduler/scheduler.hpp"
#include "tests/scenarios/scenario_spec.hpp"

namespace orrery {

class ScenarioWorld {
 public:
  /// `root`: where the paths of fleets begin.
  [[nodiscard]] static Result<std::unique_ptr<ScenarioWorld>> make(const ScenarioSpec& spec,
                                                                   const std::string& root);
  /// Half of make(), which is to be called instead.
  ScenarioWorld(const ScenarioSpec& spec, Topology topology);
  ScenarioWorld(const ScenarioWorld&) = delete;
  ScenarioWorld& operator=(const ScenarioWorld&) = delete;

  /// Of what the file says of the world, all but the jobs.
  [[nodiscard]] Situation situation(Instant now) const;
  [[nodiscard]] const Topology& topology() const { return fleet_.topology(); }

  [[nodiscard]] Result<JobRequest> resolve(const JobSpec& job, Instant now);
  /// Searches for what the key asks and keeps what comes of it.
  const PlanEntry& plan(const PlanKey& key);

  /// Enters a running job's devices everywhere they count, or takes them out.
  void enter(const RunningJob& job);
  void leave(const RunningJob& job);
  /// Of the same job, at another clock.
  void set_terms(RunningJob& job, std::uint32_t gang, const GangTerms& terms);
  void advance(Duration time) { usage_->advance(time); }

  /// Ascending; a node by its name, or all of a domain by its path.
  [[nodiscard]] Result<std::vector<NodeId>> nodes_named(const std::string& name) const;
  void set_health(NodeId node, NodeHealth health);
  Status set_uplinks(const ScenarioEvent& event);
  Status set_power(const ScenarioEvent& event);
  /// The running jobs are entered again.
  Status set_tenants(const std::string& yaml, std::span<const RunningJob> running);

  [[nodiscard]] Fleet& fleet() { return fleet_; }
  [[nodiscard]] const PlaceTree& tree() const { return pristine_->tree(); }
  [[nodiscard]] const TenantTree& tenants() const { return *tenants_; }
  [[nodiscard]] const TenantUsage& usage() const { return *usage_; }
  [[nodiscard]] const PlanTable& plans() const { return plans_; }
  [[nodiscard]] const WorkTable& works() const { return works_; }
  /// None where power is ignored.
  [[nodiscard]] const PowerBudget* power() const { return power_ ? &*power_ : nullptr; }
  [[nodiscard]] const PowerCaps& caps() const { return *caps_; }

 private:
  Status set_series();
  Status set_risk();
  void count(const RunningJob& job, std::int64_t sign);
  void draw(const RunningJob& job, std::int64_t sign);

  const ScenarioSpec& spec_;
  Fleet fleet_;
  std::unique_ptr<PristineFleet> pristine_;
  std::unique_ptr<TenantTree> tenants_;
  std::optional<TenantUsage> usage_;
  WorkTable works_;
  std::unique_ptr<PlanSizes> sizes_;
  PlanTable plans_;
  ClassTable classes_;
  std::optional<FleetCosts> costs_;
  PowerTree power_tree_;
  std::optional<PowerBudget> power_;
  std::optional<PowerCaps> caps_;
  std::optional<StepSeries<DollarsPerJoule>> electricity_;
  std::optional<StepSeries<GramsCo2PerJoule>> carbon_;
  std::vector<float> risk_;
  Changes changes_;
};

}  // namespace orrery
