// scheduler/power/power_budget.hpp - the limit and the planned draw of every power domain and
// cooling loop.
//
// Three values. PowerTree: which domains carry a rack's draw, and what idle nodes draw; made once
// for a topology. PowerCaps: the present limits, which the operator and failing units change while
// jobs run. PowerBudget: the planned draw, that is the idle draw of all nodes (drained and lost
// ones included) plus what running gangs add; every start checks it, a what-if copies it.
//
// All counts are whole milliwatts at the nodes' inlets, so what was added can be subtracted
// exactly. A limit at the meter (site cap, feeds) is converted once into what it leaves the nodes:
// limit / PUE, less the switches and the storage of the site. A cooling loop takes up all that its
// racks draw as heat. Invariant: the planned draw is never below the idle draw. Cost: a start is
// O(nodes x depth), no allocation; a copy is 8 bytes a domain.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/quantity.hpp"
#include "fleet/topology.hpp"

namespace orrery {

using Milliwatts = std::int64_t;

/// Rounds to the nearest milliwatt; larger values become a gigawatt, which no node draws.
[[nodiscard]] Milliwatts milliwatts_of(Watts watts);
[[nodiscard]] constexpr Watts watts_of(Milliwatts draw) {
  return Watts(static_cast<double>(draw) / 1000);
}

/// What a gang adds to the idle draw of a node. Invariant: not negative.
struct NodeDraw {
  NodeId node;
  Milliwatts added = 0;
};

/// The part of a gang that is on one node.
struct NodeShare {
  NodeId node;
  double accelerators = 1;  ///< a fraction where one is shared
};

/// The topology must outlive the tree, and the tree the caps and budgets made from it.
class PowerTree {
 public:
  explicit PowerTree(const Topology& topology);

  [[nodiscard]] const Topology& topology() const { return *topology_; }
  /// The domains that count a rack's draw: the rack, upwards to the site, then its loop.
  [[nodiscard]] std::span<const PowerDomainId> path(DomainId rack) const;
  /// Idle draw of a whole node; 0 where it is not published (see assumptions).
  [[nodiscard]] Milliwatts idle(NodeId node) const;
  [[nodiscard]] std::span<const std::string> assumptions() const { return assumptions_; }

  /// Milliwatts that `limit` of a domain leaves for the nodes; negative if switches and storage
  /// alone exceed it.
  [[nodiscard]] Milliwatts room_under(PowerDomainId id, Watts limit) const;
  /// The load of a domain, as its limit counts it, while its nodes draw `draw`.
  [[nodiscard]] Watts load_of(PowerDomainId id, Milliwatts draw) const;

 private:
  friend class PowerBudget;

  /// Loads between the nodes and the point at which the limit is measured.
  struct Overhead {
    double pue = 1;
    Milliwatts shared = 0;  ///< switches and storage
  };

  void set_idle();
  void set_paths();

  const Topology* topology_;
  DomainId first_rack_;
  std::vector<PowerDomainId> path_;
  std::vector<std::uint32_t> path_start_;  ///< by rack, and the end of the last
  std::vector<Overhead> overhead_;         ///< by domain
  std::vector<Milliwatts> node_idle_;      ///< by node group
  std::vector<Milliwatts> domain_idle_;
  std::vector<std::string> assumptions_;
};

/// What a gang adds while each of its accelerators, with its share of the node, draws `each`.
[[nodiscard]] std::vector<NodeDraw> draws_of(const PowerTree& tree,
                                             std::span<const NodeShare> nodes, Watts each);

/// Limits as built, lowered or raised while the fleet runs.
class PowerCaps {
 public:
  explicit PowerCaps(const PowerTree& tree);

  /// Sets the operator's cap, measured as the domain's limit is; no value removes it. It never
  /// raises a limit above what the equipment carries; a site cap is the operator's own, so a new
  /// one replaces it.
  void set_cap(PowerDomainId id, std::optional<Watts> cap);
  /// Sets the capacity of the remaining units of a feed, UPS or cooling loop; no value: all units
  /// work.
  void set_supply(PowerDomainId id, std::optional<Watts> supply);

  [[nodiscard]] std::optional<Watts> cap(PowerDomainId id) const { return cap_[id.value()]; }
  [[nodiscard]] std::optional<Watts> supply(PowerDomainId id) const { return supply_[id.value()]; }

  /// The least of the limits in force; no value where there is none.
  [[nodiscard]] std::optional<Watts> limit(PowerDomainId id) const;
  /// What the limit leaves for the nodes.
  [[nodiscard]] Milliwatts room(PowerDomainId id) const { return room_[id.value()]; }

 private:
  void update(PowerDomainId id);

  const PowerTree* tree_;
  std::vector<std::optional<Watts>> cap_;
  std::vector<std::optional<Watts>> supply_;
  std::vector<Milliwatts> room_;
};

/// The domain that refuses a start, and how much would have to be freed there.
struct PowerShortfall {
  PowerDomainId domain;
  Milliwatts missing = 0;
};

struct PowerHeadroom {
  Milliwatts free = 0;    ///< 0 while a domain above is over its cap
  PowerDomainId binding;  ///< the domain with the least free; the lowest id among equals
};

class PowerBudget {
 public:
  /// The budget of a fleet without work.
  explicit PowerBudget(const PowerTree& tree) : tree_(&tree), planned_(tree.domain_idle_) {}

  [[nodiscard]] const PowerTree& tree() const { return *tree_; }

  /// Adds regardless of the caps, for jobs that run already. Precondition of remove: it was added.
  void add(std::span<const NodeDraw> draws);
  void remove(std::span<const NodeDraw> draws);

  /// Adds all of it, or nothing and returns the domain that lacks most (the lowest id among
  /// equals). A domain over its cap refuses every increase.
  [[nodiscard]] std::optional<PowerShortfall> try_add(const PowerCaps& caps,
                                                      std::span<const NodeDraw> draws);
  /// Returns what try_add() would, without adding anything. Cost: a copy in addition.
  [[nodiscard]] std::optional<PowerShortfall> check(const PowerCaps& caps,
                                                    std::span<const NodeDraw> draws) const;

  /// How much one more start in a rack may add. O(depth).
  [[nodiscard]] PowerHeadroom headroom(const PowerCaps& caps, DomainId rack) const;
  /// By how much the draw of a domain's nodes exceeds what its cap leaves them; not positive within
  /// it.
  [[nodiscard]] Milliwatts excess(const PowerCaps& caps, PowerDomainId id) const {
    return planned_[id.value()] - caps.room(id);
  }
  /// Planned load of a domain, as its limit counts it: a site cap or feeds at the meter.
  [[nodiscard]] Watts planned(PowerDomainId id) const {
    return tree_->load_of(id, planned_[id.value()]);
  }

  friend bool operator==(const PowerBudget&, const PowerBudget&) = default;

 private:
  [[nodiscard]] std::span<const PowerDomainId> path_of(NodeId node) const;

  const PowerTree* tree_;
  std::vector<Milliwatts> planned_;  ///< by domain, at the nodes
};

}  // namespace orrery
