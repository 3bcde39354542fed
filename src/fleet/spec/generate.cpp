#include "fleet/spec/generate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fleet/network/torus_blocks.hpp"
#include "fleet/rack_cooling.hpp"

namespace orrery {
namespace {

/// The sizes of a system in the builder's terms: pods of racks of nodes.
struct Layout {
  int nodes = 0;
  int nodes_per_pod = 0;
  int nodes_per_rack = 0;
  std::vector<int> torus;  ///< shape of a pod's, or a rack's, scale-up domain
  std::vector<int> cube;
};

/// The inputs from which a spec is made.
struct Blueprint {
  const Catalog& catalog;
  const SystemType& system;
  const NodeType& node;
  Layout layout;
};

int product(const std::vector<int>& sides) {
  int all = 1;
  for (const int side : sides) all *= side;
  return all;
}

// Returns the number of nodes that the source publishes, in whatever units it counts.
int published_nodes(const SystemType& system, const NodeType& node) {
  if (system.reference_nodes) return *system.reference_nodes;
  if (system.nodes) return *system.nodes;
  if (system.accelerators) return *system.accelerators / node.accelerators_per_node;
  if (system.scalable_unit_nodes) {
    return *system.scalable_unit_nodes * system.max_scalable_units.value_or(1);
  }
  if (system.scalable_unit_racks && system.rack_trays) {
    return *system.scalable_unit_racks * *system.rack_trays;
  }
  return system.rack_trays.value_or(1);
}

int nodes_per_pod(const SystemType& system, const NodeType& node, const Layout& layout) {
  if (system.scalable_unit_nodes) return *system.scalable_unit_nodes;
  if (system.scalable_unit_racks) return *system.scalable_unit_racks * layout.nodes_per_rack;
  if (system.pod_accelerators) return *system.pod_accelerators / node.accelerators_per_node;
  if (system.segment_accelerators) return *system.segment_accelerators / node.accelerators_per_node;
  if (system.servers_per_tor_set) return *system.servers_per_tor_set;
  return std::min(layout.nodes, 32 * layout.nodes_per_rack);
}

// A rack of air-cooled servers rarely holds more than this, even if its cooling could.
constexpr int kServersPerRack = 4;

Result<Layout> torus_layout(const SystemType& system, const NodeType& node, Layout layout) {
  const int per_node = node.accelerators_per_node;
  const int accelerators = layout.nodes * per_node;
  const int unit = product(system.cube_shape.empty() ? system.torus_shape : system.cube_shape);
  if (accelerators % unit != 0) {
    return input_error({}, fmt::format("{} is made of blocks of {} accelerators; {} nodes have {}",
                                       system.id, unit, layout.nodes, accelerators));
  }
  if (!system.cube_shape.empty()) {
    layout.cube = system.cube_shape;
    layout.torus = torus_of_blocks(accelerators / unit, system.cube_shape);
    layout.nodes_per_rack = unit / per_node;
    layout.nodes_per_pod = layout.nodes;
    return layout;
  }
  layout.torus = system.torus_shape;
  layout.nodes_per_pod = unit / per_node;
  layout.nodes_per_rack = std::min(layout.nodes_per_rack, layout.nodes_per_pod);
  return layout;
}

Result<Layout> layout_of(const Catalog& catalog, const SystemType& system, const NodeType& node,
                         std::optional<int> nodes) {
  Layout layout;
  layout.nodes = nodes.value_or(published_nodes(system, node));
  layout.nodes_per_rack = system.nodes_per_rack ? *system.nodes_per_rack
                          : system.rack_trays   ? *system.rack_trays
                                                : rack_nodes_max(catalog, node, kServersPerRack);
  if (!system.cube_shape.empty() || !system.torus_shape.empty()) {
    return torus_layout(system, node, layout);
  }
  if (system.rack_trays && layout.nodes % *system.rack_trays != 0) {
    return input_error({}, fmt::format("{} comes in racks of {} nodes; {} is no multiple",
                                       system.id, *system.rack_trays, layout.nodes));
  }
  layout.nodes_per_pod = std::max(1, nodes_per_pod(system, node, layout));
  return layout;
}

RackSpec rack_of(const Blueprint& from, int nodes) {
  const auto& [catalog, system, node, layout] = from;
  RackSpec rack;
  rack.nodes.push_back({.type = node.id, .count = nodes});
  const Watts load = planned_power(node) * nodes;
  if (const CoolingClass* least = least_cooling(catalog, node, load); least != nullptr) {
    rack.cooling = least->id;
  }
  const std::optional<Watts> limit =
      system.rack_power_max ? system.rack_power_max : system.rack_power;
  if (limit && *limit >= load) rack.power_limit = limit;
  return rack;
}

// Returns `nodes` nodes as full racks and a smaller last one.
std::vector<RackSpec> racks_of(const Blueprint& from, int nodes) {
  const Layout& layout = from.layout;
  std::vector<RackSpec> racks;
  const int full = nodes / layout.nodes_per_rack;
  const int rest = nodes % layout.nodes_per_rack;
  if (full > 0) {
    racks.push_back(rack_of(from, layout.nodes_per_rack));
    racks.back().count = full;
  }
  if (rest > 0) {
    racks.push_back(rack_of(from, rest));
    if (full > 0) racks.back().name = "last-rack";
  }
  return racks;
}

std::vector<PodSpec> pods_of(const Blueprint& from) {
  const SystemType& system = from.system;
  const Layout& layout = from.layout;
  std::vector<PodSpec> pods;
  const int full = layout.nodes / layout.nodes_per_pod;
  const int rest = layout.nodes % layout.nodes_per_pod;
  const auto add = [&](const std::string& name, int count, int nodes) {
    PodSpec pod;
    pod.name = name;
    pod.count = count;
    pod.racks = racks_of(from, nodes);
    if (!layout.torus.empty()) {
      const TorusSpec torus{layout.torus, layout.cube, false, {}};
      if (layout.nodes_per_pod > layout.nodes_per_rack || !layout.cube.empty()) {
        pod.torus = torus;
      } else {
        for (RackSpec& rack : pod.racks) rack.torus = torus;
      }
    }
    pods.push_back(std::move(pod));
  };
  const std::string name = system.scalable_unit_nodes || system.scalable_unit_racks ? "su" : "pod";
  if (full > 0) add(name, full, layout.nodes_per_pod);
  if (rest > 0) add(full > 0 ? "last-" + name : name, 1, rest);
  return pods;
}

FabricTopology topology_of(const SystemType& system) {
  if (system.topology == "dragonfly") return FabricTopology::kDragonfly;
  if (system.topology.find("rail-optimized") != std::string::npos) {
    return FabricTopology::kRailOptimizedFatTree;
  }
  return FabricTopology::kFatTree;
}

FabricSpec fabric_of(const Blueprint& from) {
  const auto& [catalog, system, node, layout] = from;
  FabricSpec fabric;
  fabric.type = *system.fabric;
  fabric.topology = topology_of(system);
  fabric.switch_radix = system.switch_radix;
  if (system.topology.starts_with("dual-plane")) fabric.planes = 2;
  // If pods have less bandwidth between them than inside, the third tier joins whole pods.
  const double between = system.oversubscription.value_or(1);
  if (between > 1 && system.pod_accelerators) {
    fabric.spine_oversubscription = between;
    fabric.pod_nodes = layout.nodes_per_pod;
    const int radix = catalog.find<ScaleOutFabric>(fabric.type)->switch_radix.value_or(64);
    fabric.unit_nodes = std::max(1, radix / 2 / std::max(1, node.compute_nics));
  } else {
    fabric.leaf_oversubscription = system.oversubscription.value_or(1);
  }
  // A scalable unit of rail-optimised racks is the set of nodes under one set of leaves.
  if (fabric.topology == FabricTopology::kRailOptimizedFatTree && system.scalable_unit_nodes) {
    fabric.unit_nodes = *system.scalable_unit_nodes;
  }
  return fabric;
}

}  // namespace

Result<FleetSpec> generate_fleet(const Catalog& catalog, const std::string& system,
                                 std::optional<int> nodes) {
  Result<const SystemType*> found = catalog.require<SystemType>(system);
  if (!found) return forward_error(found);
  const SystemType& type = **found;
  const NodeType& node = *catalog.find<NodeType>(type.node);
  constexpr int kNodesMax = 1 << 20;
  if (nodes && (*nodes < 1 || *nodes > kNodesMax)) {
    return input_error({}, fmt::format("--nodes is {}, expected 1 to {}", *nodes, kNodesMax));
  }
  Result<Layout> layout = layout_of(catalog, type, node, nodes);
  if (!layout) return forward_error(layout);
  const Blueprint blueprint{catalog, type, node, *std::move(layout)};
  FleetSpec spec;
  spec.name = type.id;
  spec.description =
      fmt::format("{} x {}; {}", blueprint.layout.nodes, node.id, type.provenance.source);
  SiteSpec site;
  HallSpec hall;
  hall.pods = pods_of(blueprint);
  site.halls.push_back(std::move(hall));
  if (type.fabric) site.fabrics.push_back(fabric_of(blueprint));
  spec.sites.push_back(std::move(site));
  return spec;
}

}  // namespace orrery
