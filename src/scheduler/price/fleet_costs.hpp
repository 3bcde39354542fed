// scheduler/price/fleet_costs.hpp - what an accelerator of each type costs and draws at each site
// of a fleet, owned or rented.
//
// Computed once a fleet from the catalog, the sites and what the operator stated. A figure that is
// not published is absent and listed in missing(), never guessed; what stands in for one is listed
// in assumptions(). Immutable. Cost: making O(nodes), a look-up O(1).
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fleet/topology.hpp"
#include "planner/economics.hpp"

namespace orrery {

struct FleetPool;

/// Costs of one accelerator, its share of the node included.
struct DeviceCosts {
  std::optional<DollarsPerSecond> hire;  ///< rent, or depreciation and maintenance
  bool owned = false;                    ///< its electricity is paid beside the hire
  std::optional<PowerModel> power;
  double pue = 1;
  DollarsPerJoule electricity;
  GramsCo2PerJoule carbon;

  [[nodiscard]] std::optional<Watts> idle() const;
  [[nodiscard]] std::optional<Watts> training() const;  ///< draw while the device computes all the
                                                        ///< time

  /// What the meter of the site shows while the device draws `draw` at its node.
  [[nodiscard]] Watts metered(Watts draw) const { return draw * pue; }
  /// The electricity that is paid beside the hire, at a price; 0 for rented devices. Decisions and
  /// bills both use it.
  [[nodiscard]] DollarsPerSecond electricity_beside(Watts draw, DollarsPerJoule price) const;
  /// The price of a held device that draws `draw` at its node, at the site's price of electricity.
  [[nodiscard]] std::optional<DollarsPerSecond> price(Watts draw) const;
};

class FleetCosts {
 public:
  /// Where a site has several node types of one accelerator, those with the most devices count
  /// (ties: the first), for owned and rented nodes separately. A price basis that the operator
  /// stated holds for all nodes, whatever their ownership. Errors: a figure of a site or of the
  /// operator that is out of range, an unknown region.
  [[nodiscard]] static Result<FleetCosts> make(const PlannerFacts& facts, const Topology& topology,
                                               const EconomicsOptions& stated);

  /// The costs under the ownership of most of the site's devices of the type (ties: rented).
  /// nullptr: the site has none of that type.
  [[nodiscard]] const DeviceCosts* find(FleetTypeId type, DomainId site) const;
  /// The costs under a node's own ownership. Precondition: a node of the topology it was made for.
  [[nodiscard]] const DeviceCosts* at(const Topology& topology, NodeId node) const;
  /// Whether no site has a type both owned and rented: then at() is find().
  [[nodiscard]] bool uniform() const { return uniform_; }

  [[nodiscard]] std::span<const std::string> missing() const { return missing_; }
  [[nodiscard]] std::span<const std::string> assumptions() const { return assumptions_; }

 private:
  /// The costs of a type at a site, by ownership.
  struct Entry {
    std::array<std::optional<DeviceCosts>, 2> costs;
    std::array<std::uint64_t, 2> devices{};

    [[nodiscard]] const DeviceCosts* find(NodeOwnership ownership) const;
  };

  [[nodiscard]] Status add(const PlannerFacts& facts, const FleetPool& pool,
                           NodeOwnership ownership);
  [[nodiscard]] std::size_t index(FleetTypeId type, DomainId site) const {
    return (site.value() - first_site_.value()) * types_ + type.value();
  }

  DomainId first_site_;
  std::size_t types_ = 0;
  std::vector<Entry> table_;  ///< by site and type
  bool uniform_ = true;
  std::vector<std::string> missing_;
  std::vector<std::string> assumptions_;
};

}  // namespace orrery
