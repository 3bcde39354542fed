// fleet/network/fat_tree.cpp - computes the number of switches of a fat tree, then lays them out.
#include "fleet/network/fat_tree.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/text/quantity_text.hpp"

namespace orrery {
namespace {

using Rails = FatTreeParameters::Rails;
using Count = std::int64_t;

constexpr Count kRadixMax = 4096;
constexpr Count kTreesMax = 256;      // the range of Switch::plane
constexpr Count kPortsMax = 1 << 23;  // a million endpoints of eight planes; within 32-bit links
constexpr Count kLinksMax = 1 << 24;  // 100 MB
constexpr double kOversubscriptionMax = 100;
constexpr double kRounding = 1e-9;  // a quotient this close to a whole number is that number

/// The counts of one tree. There are `trees` disjoint trees: one per plane, or per rail of a plane.
struct Plan {
  Count trees = 1;
  Count leaf_down = 0;  ///< d1: ports of a leaf that may face nodes
  Count leaves_per_unit = 1;
  Count unit_nodes = 0;
  Count units = 0;
  Count leaf_up = 0;  ///< 0: a single leaf
  Count pod_units = 0;
  Count pods = 1;
  Count pod_spines = 0;
  Count spine_up = 0;     ///< 0: two levels
  Count group_cores = 0;  ///< cores for each spine position

  [[nodiscard]] Count leaves() const { return units * leaves_per_unit; }
  [[nodiscard]] Count pod_leaves() const { return pod_units * leaves_per_unit; }
  [[nodiscard]] Count leaf_spine_cables() const { return leaf_up / pod_spines; }
  [[nodiscard]] Count spine_core_cables() const { return spine_up / group_cores; }
  [[nodiscard]] Count links() const { return trees * pod_spines * (leaves() + pods * group_cores); }
};

Count ceil_divide(Count a, Count b) { return (a + b - 1) / b; }

/// Returns the ports of a switch that may face down: floor(k * o / (1 + o)).
Count down_ports(int radix, double oversubscription) {
  return static_cast<Count>(
      std::floor(radix * oversubscription / (1 + oversubscription) + kRounding));
}

/// Returns the uplinks that carry `down` ports at an oversubscription.
Count up_ports(Count down, double oversubscription) {
  return static_cast<Count>(std::ceil(static_cast<double>(down) / oversubscription - kRounding));
}

/// Returns the least n dividing `uplinks` such that the uplinks of `switches` switches, spread
/// evenly over n switches above, take at most `ports` of each; 0 if there is none.
Count fewest_above(Count uplinks, Count switches, Count ports) {
  for (Count n = 1; n <= uplinks; ++n) {
    if (uplinks % n == 0 && switches * (uplinks / n) <= ports) return n;
  }
  return 0;
}

std::string text(Count count) { return print_count(static_cast<double>(count)); }

Status check_whole(std::string_view name, Count value, Count max) {
  if (value >= 1 && value <= max) return {};
  return input_error(
      {}, fmt::format("{} of a fat tree must be 1 to {}, not {}", name, text(max), text(value)));
}

Status check_oversubscription(std::string_view name, double value) {
  if (value >= 1 / kOversubscriptionMax && value <= kOversubscriptionMax) return {};
  return input_error({}, fmt::format("{} oversubscription must be {} to {}, not {}", name,
                                     1 / kOversubscriptionMax, kOversubscriptionMax, value));
}

Status check_parameters(const FatTreeParameters& p) {
  struct Whole {
    std::string_view name;
    Count value;
    Count max;
  };
  for (const Whole& whole :
       {Whole{"nodes", p.nodes, kPortsMax}, Whole{"NICs per node", p.nics_per_node, kTreesMax},
        Whole{"switch radix", p.radix, kRadixMax}, Whole{"planes", p.planes, kTreesMax},
        Whole{"unit nodes", p.unit_nodes.value_or(1), kPortsMax},
        Whole{"pod nodes", p.pod_nodes.value_or(1), kPortsMax}}) {
    if (Status status = check_whole(whole.name, whole.value, whole.max); !status) return status;
  }
  const Count node_ports = Count{p.nics_per_node} * p.planes;
  if (Status status = check_whole("NIC ports per node", node_ports, kTreesMax); !status) {
    return status;
  }
  if (Status status = check_whole("NIC ports", node_ports * p.nodes, kPortsMax); !status) {
    return status;
  }
  if (!(p.nic_bandwidth > BytesPerSecond(0))) {
    return input_error({}, "the NIC bandwidth of a fat tree must be above 0");
  }
  if (Status status = check_oversubscription("leaf", p.leaf_oversubscription); !status) {
    return status;
  }
  return check_oversubscription("spine", p.spine_oversubscription);
}

Status plan_leaves(const FatTreeParameters& p, Plan& plan) {
  const bool together = p.rails == Rails::kTogether;
  plan.trees = p.rails == Rails::kSeparate ? Count{p.planes} * p.nics_per_node : p.planes;
  plan.leaves_per_unit = p.rails == Rails::kPerLeaf ? p.nics_per_node : 1;
  plan.leaf_down = down_ports(p.radix, p.leaf_oversubscription);
  const Count ports_of_node = together ? p.nics_per_node : 1;
  const Count fitting = plan.leaf_down / ports_of_node;
  plan.unit_nodes = p.unit_nodes.value_or(static_cast<int>(fitting));
  if (plan.unit_nodes < 1 || plan.unit_nodes > fitting) {
    return infeasible(fmt::format(
        "a unit of {} needs {} ports on its leaf, but radix {} at leaf oversubscription {} leaves "
        "{} for nodes: use a larger radix{}",
        plan.unit_nodes < 1 ? "1 node" : text(plan.unit_nodes) + " nodes",
        text(std::max<Count>(plan.unit_nodes, 1) * ports_of_node), text(p.radix),
        p.leaf_oversubscription, text(plan.leaf_down),
        together ? ", fewer nodes a unit or a leaf for each rail" : " or fewer nodes a unit"));
  }
  plan.units = ceil_divide(p.nodes, plan.unit_nodes);
  if (plan.leaves() > 1) {
    // A single unit that is not full needs no more uplinks than its nodes have ports.
    const Count nodes = std::min<Count>(plan.unit_nodes, p.nodes);
    plan.leaf_up = up_ports(nodes * ports_of_node, p.leaf_oversubscription);
  }
  return {};
}

std::string too_many_pods(const FatTreeParameters& p, const Plan& plan) {
  const Count nodes_max = Count{p.radix} * plan.pod_units * plan.unit_nodes;
  return fmt::format(
      "{} nodes of {} NICs need {} pods, but switches of radix {} join at most {} pods of {} "
      "nodes in three levels, {} nodes in all: use a larger radix{} or planes, whose narrower "
      "ports give one switch more of them",
      text(p.nodes), p.nics_per_node, text(plan.pods), p.radix, p.radix,
      text(plan.pod_units * plan.unit_nodes), text(nodes_max),
      p.rails == Rails::kSeparate ? "" : ", separate rails");
}

Status plan_three_levels(const FatTreeParameters& p, Plan& plan) {
  const Count spine_down = down_ports(p.radix, p.spine_oversubscription);
  plan.pod_spines = fewest_above(plan.leaf_up, plan.pod_leaves(), spine_down);
  if (plan.pod_spines == 0) {
    return infeasible(fmt::format(
        "a pod of {} leaves is too large: a spine of radix {} at spine oversubscription {} has {} "
        "ports down, one at least for each leaf: use smaller pods, a larger radix or separate "
        "rails",
        text(plan.pod_leaves()), p.radix, p.spine_oversubscription, text(spine_down)));
  }
  const Count used = plan.pod_leaves() * plan.leaf_spine_cables();
  plan.spine_up = up_ports(used, p.spine_oversubscription);
  plan.group_cores = fewest_above(plan.spine_up, plan.pods, p.radix);
  if (plan.group_cores == 0) return infeasible(too_many_pods(p, plan));
  return {};
}

Status plan_upper_levels(const FatTreeParameters& p, Plan& plan) {
  const Count pod_leaves =
      std::min<Count>(p.radix / 2, down_ports(p.radix, p.spine_oversubscription));
  plan.pod_units = p.pod_nodes ? ceil_divide(*p.pod_nodes, plan.unit_nodes)
                               : std::max<Count>(1, pod_leaves / plan.leaves_per_unit);
  plan.pods = ceil_divide(plan.units, plan.pod_units);
  const bool pods_wanted = p.pod_nodes && plan.pods > 1 && p.spine_oversubscription != 1;
  if (plan.leaves() > p.radix || pods_wanted) return plan_three_levels(p, plan);
  plan.pods = 1;
  plan.pod_units = plan.units;
  if (plan.leaf_up > 0) plan.pod_spines = fewest_above(plan.leaf_up, plan.leaves(), p.radix);
  return {};
}

Result<Plan> make_plan(const FatTreeParameters& p) {
  if (Status status = check_parameters(p); !status) return forward_error(status);
  Plan plan;
  if (Status status = plan_leaves(p, plan); !status) return forward_error(status);
  if (Status status = plan_upper_levels(p, plan); !status) return forward_error(status);
  if (plan.links() > kLinksMax) {
    return infeasible(fmt::format(
        "the network would have {} links between switches, more than the {} that can be held: use "
        "larger units or more oversubscription",
        text(plan.links()), text(kLinksMax)));
  }
  return plan;
}

/// Lays out a plan. Within a tier, switches are ordered by tree, then by unit, pod or core group.
class FatTreeLayout {
 public:
  FatTreeLayout(const FatTreeParameters& parameters, const Plan& plan)
      : p_(parameters), plan_(plan) {}

  FabricParts build() {
    parts_.kind = kind();
    parts_.nodes = static_cast<std::uint32_t>(p_.nodes);
    parts_.ports_per_node = static_cast<std::uint32_t>(p_.nics_per_node * p_.planes);
    parts_.port_bandwidth = p_.nic_bandwidth / p_.planes;
    parts_.cable_bandwidth = parts_.port_bandwidth;
    add_switches(0, plan_.units, plan_.leaves_per_unit);
    add_switches(1, plan_.pods, plan_.pod_spines);
    add_switches(2, plan_.pod_spines, plan_.group_cores);
    attach_ports();
    if (plan_.pod_spines > 0) link_leaves();
    if (plan_.group_cores > 0) link_spines();
    return std::move(parts_);
  }

 private:
  [[nodiscard]] NetworkKind kind() const {
    if (p_.rails == Rails::kSeparate && p_.nics_per_node > 1) return NetworkKind::kRailOnlyFatTree;
    if (plan_.leaves() == 1) return NetworkKind::kSingleSwitch;
    const bool rails = p_.rails == Rails::kPerLeaf && p_.nics_per_node > 1;
    return rails ? NetworkKind::kRailOptimizedFatTree : NetworkKind::kFatTree;
  }

  void add_switches(std::uint8_t tier, Count groups, Count positions) {
    for (Count tree = 0; tree < plan_.trees; ++tree) {
      for (Count group = 0; group < groups; ++group) {
        for (Count position = 0; position < positions; ++position) {
          parts_.switches.push_back({.tier = tier,
                                     .plane = static_cast<std::uint8_t>(tree),
                                     .position = static_cast<std::uint16_t>(position),
                                     .group = static_cast<std::uint32_t>(group)});
        }
      }
    }
  }

  void attach_ports() {
    parts_.leaf_of_port.reserve(std::size_t{parts_.nodes} * parts_.ports_per_node);
    for (Count node = 0; node < p_.nodes; ++node) {
      const Count unit = node / plan_.unit_nodes;
      for (Count nic = 0; nic < p_.nics_per_node; ++nic) {
        for (Count plane = 0; plane < p_.planes; ++plane) {
          const bool own_tree = p_.rails == Rails::kSeparate;
          const Count tree = own_tree ? nic * p_.planes + plane : plane;
          const Count rail = p_.rails == Rails::kPerLeaf ? nic : 0;
          const Count leaf = tree * plan_.leaves() + unit * plan_.leaves_per_unit + rail;
          parts_.leaf_of_port.push_back(SwitchIndex::at(static_cast<std::size_t>(leaf)));
        }
      }
    }
  }

  void link_leaves() {
    const Count first_spine = plan_.trees * plan_.leaves();
    for (Count leaf = 0; leaf < plan_.trees * plan_.leaves(); ++leaf) {
      const Count tree = leaf / plan_.leaves();
      const Count pod = leaf % plan_.leaves() / plan_.pod_leaves();
      const Count spine = first_spine + (tree * plan_.pods + pod) * plan_.pod_spines;
      link_to_each(leaf, spine, plan_.pod_spines, plan_.leaf_spine_cables());
    }
  }

  void link_spines() {
    const Count tree_spines = plan_.pods * plan_.pod_spines;
    const Count first_spine = plan_.trees * plan_.leaves();
    const Count first_core = first_spine + plan_.trees * tree_spines;
    for (Count spine = 0; spine < plan_.trees * tree_spines; ++spine) {
      const Count tree = spine / tree_spines;
      const Count position = spine % plan_.pod_spines;
      const Count core = first_core + (tree * plan_.pod_spines + position) * plan_.group_cores;
      link_to_each(first_spine + spine, core, plan_.group_cores, plan_.spine_core_cables());
    }
  }

  void link_to_each(Count lower, Count first_upper, Count uppers, Count cables) {
    for (Count upper = first_upper; upper < first_upper + uppers; ++upper) {
      parts_.links.push_back({SwitchIndex::at(static_cast<std::size_t>(lower)),
                              SwitchIndex::at(static_cast<std::size_t>(upper)),
                              static_cast<std::uint16_t>(cables)});
    }
  }

  const FatTreeParameters& p_;
  const Plan& plan_;
  FabricParts parts_;
};

}  // namespace

std::int64_t fat_tree_nodes_max(int radix, int nics_per_node, Rails rails) {
  const Count half = radix / 2;
  const Count unit_nodes = rails == Rails::kTogether ? half / nics_per_node : half;
  const Count unit_leaves = rails == Rails::kPerLeaf ? nics_per_node : 1;
  return radix * (half / unit_leaves) * unit_nodes;
}

Result<Fabric> build_fat_tree(const FatTreeParameters& parameters) {
  Result<Plan> plan = make_plan(parameters);
  if (!plan) return forward_error(plan);
  return Fabric(FatTreeLayout(parameters, *plan).build());
}

}  // namespace orrery
