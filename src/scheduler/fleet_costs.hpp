// scheduler/fleet_costs.hpp - what an accelerator of each type costs and draws at each site of a
// fleet.
//
// Resolved once a fleet from the catalog, the sites and what the operator stated. A figure nobody
// published is absent and listed in missing(), never guessed; what stands in for one is listed in
// assumptions(). Immutable. Cost: making O(nodes), a look-up O(1).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fleet/topology.hpp"
#include "planner/economics.hpp"

namespace orrery {

/// Of one accelerator, its share of the node included.
struct DeviceCosts {
  std::optional<DollarsPerSecond> hire;  ///< rent, or depreciation and maintenance
  bool owned = false;                    ///< its electricity is paid beside the hire
  std::optional<PowerModel> power;
  double pue = 1;
  DollarsPerJoule electricity;
  GramsCo2PerJoule carbon;

  [[nodiscard]] std::optional<Watts> idle() const;
  [[nodiscard]] std::optional<Watts> training() const;  ///< computing all the time

  /// Of a device that is held and draws `draw` at its node.
  [[nodiscard]] std::optional<DollarsPerSecond> price(Watts draw) const;
};

class FleetCosts {
 public:
  /// Where a site has several node types of one accelerator, those of the most devices count
  /// (ties: the first). Errors: a figure of a site or of the operator that is out of range, an
  /// unknown region.
  [[nodiscard]] static Result<FleetCosts> make(const PlannerFacts& facts, const Topology& topology,
                                               const EconomicsOptions& stated);

  /// nullptr: the site has none of that type.
  [[nodiscard]] const DeviceCosts* find(FleetTypeId type, DomainId site) const;

  [[nodiscard]] std::span<const std::string> missing() const { return missing_; }
  [[nodiscard]] std::span<const std::string> assumptions() const { return assumptions_; }

 private:
  DomainId first_site_;
  std::size_t types_ = 0;
  std::vector<std::optional<DeviceCosts>> table_;  ///< by site and type
  std::vector<std::string> missing_;
  std::vector<std::string> assumptions_;
};

}  // namespace orrery
