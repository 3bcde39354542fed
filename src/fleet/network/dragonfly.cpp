// fleet/network/dragonfly.cpp - computes the groups of a dragonfly, then lays out its routers and
// cables.
#include "fleet/network/dragonfly.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/text/quantity_text.hpp"

namespace orrery {
namespace {

using Variant = DragonflyParameters::Variant;
using Count = std::int64_t;

constexpr Count kRadixMax = 4096;
constexpr Count kNicsMax = 256;
constexpr Count kPortsMax = 1 << 23;
constexpr Count kLinksMax = 1 << 24;  // 100 MB

struct Plan {
  Count terminals = 0;
  Count routers = 0;       ///< per group; the leaves of a dragonfly+
  Count spines = 0;        ///< per group; 0 for a plain dragonfly
  Count global_links = 0;  ///< per router or spine
  Count router_nodes = 0;
  Count groups = 0;

  [[nodiscard]] Count gateways() const { return spines > 0 ? spines : routers; }
  [[nodiscard]] Count links_max() const {
    const Count local = spines > 0 ? routers * spines : routers * (routers - 1) / 2;
    return groups * local + (groups > 1 ? groups * gateways() * global_links / 2 : 0);
  }
};

std::string text(Count count) { return print_count(static_cast<double>(count)); }

Status check_whole(std::string_view name, Count value, Count max) {
  if (value >= 1 && value <= max) return {};
  return input_error(
      {}, fmt::format("{} of a dragonfly must be 1 to {}, not {}", name, text(max), text(value)));
}

Status check_parameters(const DragonflyParameters& p) {
  struct Whole {
    std::string_view name;
    Count value;
    Count max;
  };
  for (const Whole& whole :
       {Whole{"nodes", p.nodes, kPortsMax}, Whole{"NICs per node", p.nics_per_node, kNicsMax},
        Whole{"NIC ports", Count{p.nodes} * p.nics_per_node, kPortsMax},
        Whole{"switch radix", p.radix, kRadixMax},
        Whole{"terminals", p.terminals.value_or(1), kRadixMax},
        Whole{"routers per group", p.routers_per_group.value_or(1), kRadixMax},
        Whole{"global links per router", p.global_links_per_router.value_or(1), kRadixMax}}) {
    if (Status status = check_whole(whole.name, whole.value, whole.max); !status) return status;
  }
  if (p.nic_bandwidth > BytesPerSecond(0)) return {};
  return input_error({}, "the NIC bandwidth of a dragonfly must be above 0");
}

void choose_balance(const DragonflyParameters& p, Plan& plan) {
  if (p.variant == Variant::kDragonfly) {
    plan.terminals = p.terminals.value_or((p.radix + 1) / 4);
    plan.routers = p.routers_per_group.value_or(static_cast<int>(2 * plan.terminals));
    plan.global_links = p.global_links_per_router.value_or(static_cast<int>(plan.terminals));
  } else {
    const int routers = p.routers_per_group.value_or(std::max(1, p.radix / 2));
    const int others = std::max(0, p.radix - routers);
    plan.routers = routers;
    plan.spines = routers;
    plan.terminals = p.terminals.value_or(others);
    plan.global_links = p.global_links_per_router.value_or(others);
  }
}

Status check_radix(const DragonflyParameters& p, const Plan& plan) {
  if (p.variant == Variant::kDragonfly) {
    const Count used = plan.terminals + plan.routers - 1 + plan.global_links;
    if (used <= p.radix) return {};
    return infeasible(fmt::format(
        "a router of {} terminals, {} other routers in its group and {} global links needs {} "
        "ports, but the radix is {}",
        plan.terminals, plan.routers - 1, plan.global_links, used, p.radix));
  }
  const Count used = plan.routers + std::max(plan.terminals, plan.global_links);
  if (used <= p.radix) return {};
  return infeasible(fmt::format(
      "groups of {} leaves and {} spines with {} terminals a leaf and {} global links a spine need "
      "{} ports on a switch, but the radix is {}",
      plan.routers, plan.spines, plan.terminals, plan.global_links, used, p.radix));
}

Status plan_groups(const DragonflyParameters& p, Plan& plan) {
  plan.router_nodes = plan.terminals / p.nics_per_node;
  if (plan.router_nodes < 1) {
    return infeasible(fmt::format(
        "a node of {} NICs does not fit a router with {} terminals: use a larger radix or more "
        "terminals",
        p.nics_per_node, plan.terminals));
  }
  const Count routers_needed = (p.nodes + plan.router_nodes - 1) / plan.router_nodes;
  plan.groups = (routers_needed + plan.routers - 1) / plan.routers;
  const Count groups_max = plan.gateways() * plan.global_links + 1;
  if (plan.groups > groups_max) {
    return infeasible(fmt::format(
        "{} nodes need {} groups, but {} global links a group reach only {} groups, {} nodes in "
        "all: use a larger radix, more global links or larger groups",
        text(p.nodes), text(plan.groups), text(plan.gateways() * plan.global_links),
        text(groups_max), text(groups_max * plan.routers * plan.router_nodes)));
  }
  if (plan.groups == 1) plan.routers = routers_needed;
  if (plan.groups == 1 && plan.routers == 1) plan.spines = 0;
  if (plan.links_max() > kLinksMax) {
    return infeasible(fmt::format(
        "the network would have {} links between switches, more than the {} that can be held: use "
        "smaller groups or fewer global links",
        text(plan.links_max()), text(kLinksMax)));
  }
  return {};
}

Result<Plan> make_plan(const DragonflyParameters& p) {
  if (Status status = check_parameters(p); !status) return forward_error(status);
  Plan plan;
  choose_balance(p, plan);
  if (Status status = check_radix(p, plan); !status) return forward_error(status);
  if (Status status = plan_groups(p, plan); !status) return forward_error(status);
  return plan;
}

/// Lays out a plan: the routers of all groups, then the spines of all groups.
class DragonflyLayout {
 public:
  DragonflyLayout(const DragonflyParameters& parameters, const Plan& plan)
      : p_(parameters), plan_(plan) {}

  FabricParts build() {
    parts_.kind = kind();
    parts_.nodes = static_cast<std::uint32_t>(p_.nodes);
    parts_.ports_per_node = static_cast<std::uint32_t>(p_.nics_per_node);
    parts_.port_bandwidth = p_.nic_bandwidth;
    parts_.cable_bandwidth = p_.nic_bandwidth;
    add_switches(0, plan_.routers);
    add_switches(1, plan_.spines);
    attach_ports();
    for (Count group = 0; group < plan_.groups; ++group) link_inside(group);
    if (plan_.groups > 1) link_groups();
    merge_links();
    return std::move(parts_);
  }

 private:
  [[nodiscard]] NetworkKind kind() const {
    if (plan_.groups == 1 && plan_.routers == 1) return NetworkKind::kSingleSwitch;
    return p_.variant == Variant::kPlus ? NetworkKind::kDragonflyPlus : NetworkKind::kDragonfly;
  }

  void add_switches(std::uint8_t tier, Count positions) {
    for (Count group = 0; group < plan_.groups; ++group) {
      for (Count position = 0; position < positions; ++position) {
        parts_.switches.push_back({.tier = tier,
                                   .plane = 0,
                                   .position = static_cast<std::uint16_t>(position),
                                   .group = static_cast<std::uint32_t>(group)});
      }
    }
  }

  void attach_ports() {
    parts_.leaf_of_port.reserve(std::size_t{parts_.nodes} * parts_.ports_per_node);
    for (Count node = 0; node < p_.nodes; ++node) {
      const SwitchIndex router =
          SwitchIndex::at(static_cast<std::size_t>(node / plan_.router_nodes));
      parts_.leaf_of_port.insert(parts_.leaf_of_port.end(), parts_.ports_per_node, router);
    }
  }

  void link_inside(Count group) {
    const Count first_router = group * plan_.routers;
    for (Count a = 0; a < plan_.routers; ++a) {
      for (Count b = plan_.spines > 0 ? 0 : a + 1; b < plan_.gateways(); ++b) {
        add_link(first_router + a, first_gateway(group) + b);
      }
    }
  }

  /// Every pair of groups gets `each` cables; the `left` ports that then remain in every group are
  /// joined as far as possible by rings of chords (and, if `left` is odd and the number of groups
  /// even, by the diameter).
  void link_groups() {
    const Count ports = plan_.gateways() * plan_.global_links;
    const Count each = ports / (plan_.groups - 1);
    const Count left = ports % (plan_.groups - 1);
    std::vector<Count> ports_used(static_cast<std::size_t>(plan_.groups));
    for (Count a = 0; a < plan_.groups; ++a) {
      for (Count b = a + 1; b < plan_.groups; ++b) {
        const Count apart = std::min(b - a, plan_.groups - (b - a));
        const bool diameter = 2 * apart == plan_.groups && left % 2 == 1;
        const Count cables = each + (apart <= left / 2 || diameter ? 1 : 0);
        for (Count cable = 0; cable < cables; ++cable) {
          add_link(next_gateway(a, ports_used), next_gateway(b, ports_used));
        }
      }
    }
  }

  [[nodiscard]] Count first_gateway(Count group) const {
    return plan_.spines > 0 ? plan_.groups * plan_.routers + group * plan_.spines
                            : group * plan_.routers;
  }

  /// Uses the routers' ports in turn, so no router exceeds its global links.
  [[nodiscard]] Count next_gateway(Count group, std::vector<Count>& ports_used) const {
    const Count port = ports_used[static_cast<std::size_t>(group)]++;
    return first_gateway(group) + port % plan_.gateways();
  }

  void add_link(Count lower, Count upper) {
    parts_.links.push_back({SwitchIndex::at(static_cast<std::size_t>(lower)),
                            SwitchIndex::at(static_cast<std::size_t>(upper)), 1});
  }

  /// Sorts the links and merges parallel ones.
  void merge_links() {
    std::vector<SwitchLink>& links = parts_.links;
    std::ranges::sort(links, {}, [](const SwitchLink& l) { return std::tie(l.lower, l.upper); });
    std::size_t kept = 0;
    for (std::size_t i = 0; i < links.size(); ++i) {
      if (kept > 0 && links[kept - 1].lower == links[i].lower &&
          links[kept - 1].upper == links[i].upper) {
        ++links[kept - 1].cables;
      } else {
        links[kept++] = links[i];
      }
    }
    links.resize(kept);
  }

  const DragonflyParameters& p_;
  const Plan& plan_;
  FabricParts parts_;
};

}  // namespace

Result<Fabric> build_dragonfly(const DragonflyParameters& parameters) {
  Result<Plan> plan = make_plan(parameters);
  if (!plan) return forward_error(plan);
  return Fabric(DragonflyLayout(parameters, *plan).build());
}

}  // namespace orrery
