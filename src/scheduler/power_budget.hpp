// scheduler/power_budget.hpp - what every power domain and cooling loop may carry, and is planned
// to.
//
// Three values. PowerTree: which domains a rack's draw passes, and what idle nodes draw; made once
// a topology. PowerCaps: the present limits; the operator and failing units change them while work
// runs. PowerBudget: the planned draw, the idle draw of all nodes (a drained or lost one keeps it)
// and what running gangs add to it; every start asks it, a what-if copies it.
//
// All counts are whole milliwatts at the nodes' inlets, so what was added comes off exactly. A
// limit at the meter (site cap, feeds) is turned once into what it leaves the nodes: limit / PUE,
// less the switches and the storage of the site. A cooling loop takes as heat all that its racks
// draw. Invariant: planned draw is never below the idle draw. Cost: a start O(nodes x depth), no
// allocation; a copy 8 bytes a domain.
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

/// Rounded to the nearest; a gigawatt for more, which no node draws.
[[nodiscard]] Milliwatts milliwatts_of(Watts watts);
[[nodiscard]] constexpr Watts watts_of(Milliwatts draw) {
  return Watts(static_cast<double>(draw) / 1000);
}

/// What a gang adds to a node's idle draw. Invariant: not negative.
struct NodeDraw {
  NodeId node;
  Milliwatts added = 0;
};

/// Part of a gang on one node.
struct NodeShare {
  NodeId node;
  double accelerators = 1;  ///< a fraction where one is shared
};

/// The topology must outlive it, and it the caps and budgets made from it.
class PowerTree {
 public:
  explicit PowerTree(const Topology& topology);

  [[nodiscard]] const Topology& topology() const { return *topology_; }
  /// The domains that a rack's draw counts in: the rack, upwards to the site, then its loop.
  [[nodiscard]] std::span<const PowerDomainId> path(DomainId rack) const;
  /// Of a whole node; 0 where it is not published (see assumptions).
  [[nodiscard]] Milliwatts idle(NodeId node) const;
  [[nodiscard]] std::span<const std::string> assumptions() const { return assumptions_; }

  /// Milliwatts at the nodes that `limit` of a domain leaves them; negative when switches and
  /// storage alone exceed it.
  [[nodiscard]] Milliwatts room_under(PowerDomainId id, Watts limit) const;
  /// What a domain carries, as its limit counts it, while its nodes draw `draw`.
  [[nodiscard]] Watts load_of(PowerDomainId id, Milliwatts draw) const;

 private:
  friend class PowerBudget;

  /// What stands between the nodes and the place where the limit is counted.
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

/// What a supply still carries with `lost` of its units down: as many units as its redundancy
/// promises, or as are left if they are fewer. Precondition: lost >= 0.
[[nodiscard]] Watts usable_after(const RedundantSupply& supply, int lost);

/// Limits as built, lowered or raised while the fleet runs.
class PowerCaps {
 public:
  explicit PowerCaps(const PowerTree& tree);

  /// The operator's cap, as the domain's limit is counted; none takes it back. It never raises what
  /// the equipment carries; a site cap is the operator's own, so a new one replaces it.
  void set_cap(PowerDomainId id, std::optional<Watts> cap);
  /// What the units left of a feed, UPS or cooling loop carry (usable_after); none: all work.
  void set_supply(PowerDomainId id, std::optional<Watts> supply);

  [[nodiscard]] std::optional<Watts> cap(PowerDomainId id) const { return cap_[id.value()]; }
  [[nodiscard]] std::optional<Watts> supply(PowerDomainId id) const { return supply_[id.value()]; }

  /// The least of what holds now; none where nothing limits.
  [[nodiscard]] std::optional<Watts> limit(PowerDomainId id) const;
  /// What it leaves the nodes.
  [[nodiscard]] Milliwatts room(PowerDomainId id) const { return room_[id.value()]; }

 private:
  void update(PowerDomainId id);

  const PowerTree* tree_;
  std::vector<std::optional<Watts>> cap_;
  std::vector<std::optional<Watts>> supply_;
  std::vector<Milliwatts> room_;
};

/// The domain that refuses a start, and what would have to come free there.
struct PowerShortfall {
  PowerDomainId domain;
  Milliwatts missing = 0;
};

struct PowerHeadroom {
  Milliwatts free = 0;    ///< 0 while a domain above is over its cap
  PowerDomainId binding;  ///< the domain with the least; the lowest id among equals
};

class PowerBudget {
 public:
  /// Of a fleet without work.
  explicit PowerBudget(const PowerTree& tree) : tree_(&tree), planned_(tree.domain_idle_) {}

  [[nodiscard]] const PowerTree& tree() const { return *tree_; }

  /// Whatever the caps say: what runs, runs. Precondition of remove: it was added.
  void add(std::span<const NodeDraw> draws);
  void remove(std::span<const NodeDraw> draws);

  /// Adds all of it, or nothing and says which domain lacks most (the lowest id among equals). A
  /// domain over its cap refuses every increase.
  [[nodiscard]] std::optional<PowerShortfall> try_add(const PowerCaps& caps,
                                                      std::span<const NodeDraw> draws);
  /// The same answer, nothing added. Cost: a copy more.
  [[nodiscard]] std::optional<PowerShortfall> check(const PowerCaps& caps,
                                                    std::span<const NodeDraw> draws) const;

  /// What one more start in a rack may add. O(depth).
  [[nodiscard]] PowerHeadroom headroom(const PowerCaps& caps, DomainId rack) const;
  /// How far the nodes of a domain draw more than its cap leaves them; not positive within it.
  [[nodiscard]] Milliwatts excess(const PowerCaps& caps, PowerDomainId id) const {
    return planned_[id.value()] - caps.room(id);
  }
  /// Planned load of a domain, as its limit is counted: of a site cap or feeds at the meter.
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
