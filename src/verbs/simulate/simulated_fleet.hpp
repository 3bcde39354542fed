// verbs/simulate/simulated_fleet.hpp - the fleet and the tenants of a simulation, as options ask
// for them, with the facts they rest on.
//
// Its facts are loaded first, because policies and failures refer to them, then its cluster. It
// must not move afterwards, because the cluster refers to the facts. One thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "control/control_facts.hpp"
#include "twin/replay_rules.hpp"
#include "verbs/command_options.hpp"
#include "verbs/simulate/run_notes.hpp"
#include "verbs/simulate/simulate_options.hpp"

namespace orrery {

class SimulatedFleet {
 public:
  /// What loading rests on, and what it adds to.
  struct Loading {
    const ReplayRules& rules;
    SpecFiles& files;
    RunNotes& notes;
  };

  SimulatedFleet() = default;
  SimulatedFleet(const SimulatedFleet&) = delete;
  SimulatedFleet& operator=(const SimulatedFleet&) = delete;

  /// Loads the facts, and the fleet file, which may bring some. Errors: those of the files.
  [[nodiscard]] Status load_facts(const CommandOptions& options, const SimulateOptions& asked,
                                  SpecFiles& files);
  /// Precondition: the facts are loaded. Errors: those of the files, with their line; anything
  /// wrong in an option, naming it.
  [[nodiscard]] Status load_cluster(const SimulateOptions& asked, const Loading& loading);

  [[nodiscard]] const Catalog& catalog() const { return facts_.catalog(); }
  /// Precondition: the cluster is loaded.
  [[nodiscard]] ControlFacts& cluster() const { return *cluster_; }
  [[nodiscard]] const Topology& topology() const { return cluster_->topology(); }
  /// Error: a series of electricity prices where no node is owned, so that none is paid.
  [[nodiscard]] Status check_prices(const SimulateOptions& asked) const;

 private:
  [[nodiscard]] Result<FleetSpec> fleet_asked_for(const SimulateOptions& asked,
                                                  const Loading& loading);

  Facts facts_;
  std::optional<FleetSpec> fleet_;     ///< of --fleet
  std::optional<Catalog> with_parts_;  ///< the catalog with smaller nodes
  std::optional<TenantsSpec> tenants_;
  std::unique_ptr<ControlFacts> cluster_;
};

}  // namespace orrery
