// scenarios/scenario_parts.hpp - the inputs of a simulation from a scenario's file: a cluster, jobs
// with their true lengths, commands and observations by time, faults.
//
// Made once a scenario by make(); stays where it is, since its parts point at each other.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/control_facts.hpp"
#include "tests/scenarios/scenario_spec.hpp"
#include "twin/simulation.hpp"

namespace orrery {

/// A job that the fleet could never run.
struct RefusedJob {
  Instant at;
  std::string name;
  std::string why;
};

class ScenarioParts {
 public:
  /// `root` is the folder of relative paths of fleets. Errors: what is wrong in the file.
  [[nodiscard]] static Result<std::unique_ptr<ScenarioParts>> make(const ScenarioSpec& spec,
                                                                   const std::string& root);
  /// For make(), which is to be called instead.
  ScenarioParts(const ScenarioSpec& spec, std::unique_ptr<ControlFacts> cluster);
  ScenarioParts(const ScenarioParts&) = delete;
  ScenarioParts& operator=(const ScenarioParts&) = delete;

  [[nodiscard]] const ScenarioSpec& spec() const { return spec_; }
  [[nodiscard]] ControlFacts& cluster() const { return *cluster_; }
  [[nodiscard]] const Topology& topology() const { return cluster_->topology(); }
  [[nodiscard]] const ControlSetup& setup() const { return setup_; }
  [[nodiscard]] World::Facts world() const;
  [[nodiscard]] std::span<const PlayedJob> jobs() const { return jobs_; }         ///< by time
  [[nodiscard]] std::span<const Input> commands() const { return commands_; }     ///< by time
  [[nodiscard]] std::span<const RefusedJob> refused() const { return refused_; }  ///< by time
  [[nodiscard]] Instant until() const { return until_; }
  /// The time from which no job may be stopped, moved or resized.
  [[nodiscard]] Instant quiet_from() const { return quiet_from_; }

 private:
  Status set_up();
  Status set_series();
  Status add_jobs(const ScenarioJob& entry);
  Status add_job(const JobSpec& spec, const ScenarioJob& entry, Instant at);
  Status add_event(const ScenarioEvent& event);
  Status add_faults(const ScenarioEvent& event, Instant at);
  Status add_links(const ScenarioEvent& event, Instant at);
  Status add_power(const ScenarioEvent& event, Instant at);
  Status add_cancel(const ScenarioEvent& event, Instant at);
  template <class Command>
  Status add_nodes(const std::optional<std::string>& nodes, Instant at, Command&& command);
  void add(Instant at, InputKind what) { commands_.push_back({at, std::move(what), {}}); }
  /// Ascending; a node by its name, or all of a domain by its path.

  const ScenarioSpec& spec_;
  std::unique_ptr<ControlFacts> cluster_;
  ControlSetup setup_;
  std::optional<StepSeries<DollarsPerJoule>> electricity_;
  std::optional<StepSeries<GramsCo2PerJoule>> carbon_;
  std::vector<PlayedJob> jobs_;
  std::vector<Input> commands_;
  std::vector<Fault> faults_;
  std::vector<RefusedJob> refused_;
  Instant until_;
  Instant quiet_from_ = Instant::max();
};

}  // namespace orrery
