#include "fleet/spec/accelerator_fleet.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "fleet/network/fat_tree.hpp"
#include "fleet/network/switch_ports.hpp"
#include "fleet/network/torus_blocks.hpp"
#include "fleet/rack_cooling.hpp"
#include "hardware/node_part.hpp"

namespace orrery {
namespace {

constexpr int kAcceleratorsMax = 1 << 20;

/// Whether scale-up domains of such nodes are larger than a node.
bool spans_nodes(const NodeType& node) {
  return node.scale_up_domain_accelerators > node.accelerators_per_node;
}

bool is_torus(const Accelerator& accelerator) {
  return accelerator.scale_up.topology.starts_with("torus");
}

/// Returns the flattest block of a node's accelerators, as in TorusGrid: 4 are 2 x 2, 8 are 2 x 4.
std::vector<int> block_of(const Accelerator& accelerator, const NodeType& node) {
  int x = 1;
  for (int side = 1; side * side <= node.accelerators_per_node; ++side) {
    if (node.accelerators_per_node % side == 0) x = side;
  }
  std::vector<int> block = {x, node.accelerators_per_node / x};
  if (!accelerator.scale_up.topology.starts_with("torus2d")) block.push_back(1);
  return block;
}

/// Returns the block that optical switches rearrange in the reference systems with this node;
/// empty: none.
std::vector<int> cube_of(const Catalog& catalog, const NodeType& node) {
  for (const SystemType& system : catalog.all<SystemType>()) {
    if (system.node == node.id && !system.cube_shape.empty()) return system.cube_shape;
  }
  return {};
}

/// Returns the slowest switched Ethernet whose port is fast enough for a NIC, else the fastest;
/// nullptr: none.
const ScaleOutFabric* ethernet_for(const Catalog& catalog, BytesPerSecond nic) {
  const ScaleOutFabric* best = nullptr;
  const auto better = [&](const ScaleOutFabric& one, const ScaleOutFabric& other) {
    const bool holds = one.port_bandwidth >= nic;
    if (holds != (other.port_bandwidth >= nic)) return holds;
    return holds ? one.port_bandwidth < other.port_bandwidth
                 : one.port_bandwidth > other.port_bandwidth;
  };
  for (const ScaleOutFabric& each : catalog.all<ScaleOutFabric>()) {
    const bool ethernet = each.kind == FabricKind::kEthernet || each.kind == FabricKind::kRoce;
    if (!ethernet || !each.switch_radix) continue;
    if (best == nullptr || better(each, *best)) best = &each;
  }
  return best;
}

/// Builds the pods and the fabric of one type.
class TypeBuilder {
 public:
  TypeBuilder(const Catalog& catalog, const Accelerator& accelerator, AcceleratorFleet& fleet)
      : catalog_(catalog),
        accelerator_(accelerator),
        usual_(catalog.default_node(accelerator)),
        node_(usual_),
        fleet_(fleet) {}

  Status build(int count, std::optional<int> node_accelerators) {
    const int most = usual_.accelerators_per_node;
    if (node_accelerators && (*node_accelerators < 1 || *node_accelerators > most)) {
      return input_error({},
                         fmt::format("{} accelerators a node, expected 1 to {}, which the {} of "
                                     "{} holds",
                                     *node_accelerators, most, usual_.id, accelerator_.id));
    }
    const int each = std::min(count, node_accelerators.value_or(most));
    if (each < most) node_ = derived(each);
    const int nodes = count / each;
    fleet_.assumptions.push_back(
        fmt::format("{}: {} x {} ({} accelerators each)", accelerator_.id, nodes, node_.id, each));
    add_domains(nodes);
    std::vector<std::string> node_types = {node_.id};
    if (const int rest = count % each; rest > 0) {
      const NodeType last = derived(rest);
      add_pod(last, {.nodes = 1, .pods = 1});
      node_types.push_back(last.id);
      fleet_.assumptions.push_back(
          fmt::format("{}: a last node of {}, with the NICs of the others", accelerator_.id, rest));
    }
    add_fabric(std::move(node_types), (count + each - 1) / each);
    return {};
  }

 private:
  /// Equal pods; with a torus, each pod is one torus.
  struct Pods {
    int nodes = 0;  ///< nodes per pod
    int pods = 1;
    std::vector<int> torus = {};
    std::vector<int> cube = {};
  };

  // Makes a part of the usual node. A fabric needs equal NICs, so a last node gets those of the
  // others.
  NodeType derived(int accelerators) {
    NodeType made = part_of_node(usual_, accelerators);
    const bool last = pods_ > 0;
    if (last && node_.compute_nics > 0) made = with_nics(std::move(made), node_.compute_nics);
    fleet_.nodes.push_back(made);
    fleet_.assumptions.push_back(fmt::format("{}: {}", made.id, made.provenance.source));
    return made;
  }

  // Adds whole domains, then whole cubes of one more, then the rest. Switched domains are bounded
  // by racks.
  void add_domains(int nodes) {
    if (!spans_nodes(node_) || !is_torus(accelerator_)) return add_pod(node_, {.nodes = nodes});
    const int each = node_.accelerators_per_node;
    const std::vector<int> cube = cube_of(catalog_, node_);
    int cube_devices = 1;
    for (const int side : cube) cube_devices *= side;
    const bool cubes = !cube.empty() && cube_devices % each == 0;
    const int cube_nodes = cubes ? cube_devices / each : 0;
    const auto add = [&](int pod_nodes, int pods) {
      if (pod_nodes == 0 || pods == 0) return;
      Pods made{.nodes = pod_nodes, .pods = pods};
      if (cubes && pod_nodes % cube_nodes == 0) {
        made.torus = torus_of_blocks(pod_nodes / cube_nodes, cube);
        made.cube = cube;
      } else {
        made.torus = torus_of_blocks(pod_nodes, block_of(accelerator_, node_));
      }
      fleet_.assumptions.push_back(
          fmt::format("{}: {} torus of {}", accelerator_.id, pods, fmt::join(made.torus, " x ")));
      add_pod(node_, made);
    };
    const int domain = node_.scale_up_domain_accelerators / each;
    add(domain, nodes / domain);
    const int rest = nodes % domain;
    const int odd = cubes ? rest % cube_nodes : rest;
    add(rest - odd, 1);
    add(odd, 1);
  }

  void add_pod(const NodeType& node, const Pods& made) {
    PodSpec pod;
    pod.name = accelerator_.id;
    if (++pods_ > 1) pod.name += fmt::format("-part-{}", pods_);
    pod.count = made.pods;
    if (!made.torus.empty()) pod.torus = TorusSpec{made.torus, made.cube, false, {}};
    const int per_rack = rack_nodes(node);
    add_racks(node, {.name = "rack", .count = made.nodes / per_rack}, per_rack, pod);
    add_racks(node, {.name = "last-rack", .count = 1}, made.nodes % per_rack, pod);
    fleet_.spec.sites.front().halls.front().pods.push_back(std::move(pod));
  }

  // A domain joined by switches fills its rack. Otherwise a rack takes four servers, or small ones
  // with as many accelerators as four servers of eight.
  [[nodiscard]] int rack_nodes(const NodeType& node) const {
    constexpr int kServers = 4;
    constexpr int kAccelerators = 32;
    const bool rack_wide = spans_nodes(node) && !is_torus(accelerator_);
    const int most = rack_wide ? node.scale_up_domain_accelerators / node.accelerators_per_node
                               : std::max(kServers, kAccelerators / node.accelerators_per_node);
    return rack_nodes_max(catalog_, node, most);
  }

  void add_racks(const NodeType& node, RackSpec rack, int nodes, PodSpec& pod) const {
    if (rack.count == 0 || nodes == 0) return;
    rack.nodes.push_back({.type = node.id, .count = nodes});
    if (const auto* least = least_cooling(catalog_, node, planned_power(node) * nodes)) {
      rack.cooling = least->id;
    }
    pod.racks.push_back(std::move(rack));
  }

  void add_fabric(std::vector<std::string> node_types, int nodes) {
    const ScaleOutFabric* type = catalog_.default_fabric(usual_);
    const bool known = type != nullptr;
    if (!known) type = ethernet_for(catalog_, node_.compute_nic_rate);
    if (type == nullptr || node_.compute_nics < 1) {
      fleet_.assumptions.push_back(fmt::format("{}: no network between nodes", accelerator_.id));
      return;
    }
    FabricSpec fabric;
    fabric.name = accelerator_.id;
    fabric.type = type->id;
    fabric.node_types = std::move(node_types);
    constexpr int kRadix = 64;  // the most common, if none is published
    if (!type->switch_radix) fabric.switch_radix = kRadix;
    // One leaf per NIC, as a leaf may have too few ports for all NICs of a node. A spine uses half
    // its ports for leaves and must reach one of every rail, or else each rail is a separate tree.
    if (node_.compute_nics > 1) {
      const bool reached = node_.compute_nics <= type->switch_radix.value_or(kRadix) / 2;
      fabric.topology =
          reached ? FabricTopology::kRailOptimizedFatTree : FabricTopology::kRailOnlyFatTree;
    }
    widen_switches(*type, nodes, fabric);
    fleet_.assumptions.push_back(
        fmt::format("{}: {} ({}), a fat tree without oversubscription", accelerator_.id, type->name,
                    known ? "as its reference system" : "no reference system has a network"));
    fleet_.spec.sites.front().fabrics.push_back(std::move(fabric));
  }

  // Three levels of the usual switches limit the number of nodes: more nodes get switches with more
  // ports.
  void widen_switches(const ScaleOutFabric& type, int nodes, FabricSpec& fabric) {
    using Rails = FatTreeParameters::Rails;
    const Rails rails = fabric.topology == FabricTopology::kFatTree           ? Rails::kTogether
                        : fabric.topology == FabricTopology::kRailOnlyFatTree ? Rails::kSeparate
                                                                              : Rails::kPerLeaf;
    const int usual = fabric.switch_radix ? *fabric.switch_radix : *switch_ports(type, node_, 1);
    int radix = usual;
    while (fat_tree_nodes_max(radix, node_.compute_nics, rails) < nodes) radix *= 2;
    if (radix == usual) return;
    fabric.switch_radix = radix;
    fleet_.assumptions.push_back(fmt::format(
        "{}: switches of {} ports, as three levels of {} join at most {} nodes", accelerator_.id,
        radix, usual, fat_tree_nodes_max(usual, node_.compute_nics, rails)));
  }

  const Catalog& catalog_;
  const Accelerator& accelerator_;
  const NodeType& usual_;
  NodeType node_;
  AcceleratorFleet& fleet_;
  int pods_ = 0;
};

}  // namespace

Result<AcceleratorFleet> fleet_of_accelerators(const Catalog& catalog,
                                               const AcceleratorFleetOptions& options) {
  if (options.accelerators.empty()) return input_error({}, "a fleet needs accelerators");
  AcceleratorFleet fleet;
  fleet.spec.name = "accelerators";
  fleet.spec.sites.emplace_back().halls.emplace_back();
  std::vector<const Accelerator*> seen;
  seen.reserve(options.accelerators.size());
  for (const AcceleratorCount& each : options.accelerators) {
    Result<const Accelerator*> type = catalog.require<Accelerator>(each.type);
    if (!type) return forward_error(type);
    if (each.count < 1 || each.count > kAcceleratorsMax) {
      return input_error({}, fmt::format("{}: {} accelerators, expected 1 to {}", each.type,
                                         each.count, kAcceleratorsMax));
    }
    if (std::find(seen.begin(), seen.end(), *type) != seen.end()) {
      return input_error({}, fmt::format("{} ({}) is given twice", each.type, (*type)->id));
    }
    seen.push_back(*type);
    Status built = TypeBuilder(catalog, **type, fleet).build(each.count, options.node_accelerators);
    if (!built) return forward_error(built);
  }
  return fleet;
}

}  // namespace orrery
