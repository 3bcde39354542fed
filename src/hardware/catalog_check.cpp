#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text/nearest_name.hpp"
#include "hardware/catalog_loader.hpp"

namespace orrery {
namespace {

Status check_count(int value, int high, std::string_view what, const SourcePosition& where) {
  if (value >= 1 && value <= high) return {};
  return input_error(where, fmt::format("{} is {}, expected 1 to {}", what, value, high));
}

// Sizes are multiplied and divided later, so none may be zero and no product may overflow.
Status check_sides(const std::vector<int>& sides, std::string_view what, std::size_t least,
                   const SourcePosition& where) {
  if (sides.empty()) return {};
  constexpr double kMost = 1 << 20;
  double product = 1;
  for (const int side : sides) product *= side >= 1 ? side : kMost + 1;
  if (sides.size() >= least && sides.size() <= 3 && product <= kMost) return {};
  return input_error(where, fmt::format("{}: expected {} to 3 sides of at least 1, at most {} "
                                        "accelerators in all",
                                        what, least, kMost));
}

Status check_system_sizes(const SystemType& system, const NodeType& node) {
  constexpr int kMost = 1 << 20;
  const std::pair<std::string_view, std::optional<int>> counts[] = {
      {"nodes", system.nodes},
      {"reference_nodes", system.reference_nodes},
      {"accelerators", system.accelerators},
      {"scalable_unit_nodes", system.scalable_unit_nodes},
      {"max_scalable_units", system.max_scalable_units},
      {"scalable_unit_racks", system.scalable_unit_racks},
      {"nodes_per_rack", system.nodes_per_rack},
      {"rack_trays", system.rack_trays},
      {"racks_per_pod", system.racks_per_pod},
      {"pod_accelerators", system.pod_accelerators},
      {"segment_accelerators", system.segment_accelerators},
      {"servers_per_tor_set", system.servers_per_tor_set},
      {"switch_radix", system.switch_radix}};
  for (const auto& [what, count] : counts) {
    if (!count) continue;
    if (Status checked = check_count(*count, kMost, what, system.where); !checked) return checked;
  }
  if (system.accelerators && *system.accelerators % node.accelerators_per_node != 0) {
    return input_error(system.where,
                       fmt::format("{} accelerators are no whole number of {} with {}",
                                   *system.accelerators, node.id, node.accelerators_per_node));
  }
  if (Status torus = check_sides(system.torus_shape, "torus_shape", 2, system.where); !torus) {
    return torus;
  }
  return check_sides(system.cube_shape, "cube_shape", 3, system.where);
}

Status check_system_topology(const SystemType& system) {
  static constexpr std::string_view kKnown[] = {
      "fat-tree",    "rail-optimized-fat-tree",   "three-tier-clos", "dragonfly",
      "torus3d-ocs", "dual-plane-rail-optimized", "torus2d-16x16",   "torus3d-4x4x4"};
  if (std::find(std::begin(kKnown), std::end(kKnown), system.topology) != std::end(kKnown)) {
    return {};
  }
  return input_error(system.where,
                     fmt::format("unknown topology \"{}\"{}; known: {}", system.topology,
                                 did_you_mean(system.topology, kKnown), fmt::join(kKnown, ", ")));
}

}  // namespace

template <class Row>
Status CatalogChecker::resolve(std::string& reference, const SourcePosition& where) const {
  Result<const Row*> row = catalog_.require<Row>(reference, where);
  if (!row) return forward_error(row);
  reference = std::string(name_of_row(**row));
  return {};
}

Status CatalogChecker::run() {
  for (Status (CatalogChecker::*check)() :
       {&CatalogChecker::check_accelerators, &CatalogChecker::check_nodes,
        &CatalogChecker::check_default_nodes, &CatalogChecker::check_systems,
        &CatalogChecker::check_prices, &CatalogChecker::check_software,
        &CatalogChecker::check_facility}) {
    if (Status status = (this->*check)(); !status) return status;
  }
  return {};
}

Status CatalogChecker::check_accelerators() {
  for (Accelerator& a : rows<Accelerator>()) {
    Status status;
    if (a.scale_up.technology) status = resolve<ScaleUpLink>(*a.scale_up.technology, a.where);
    if (status && a.host.technology) status = resolve<HostLink>(*a.host.technology, a.where);
    if (status && a.scale_up.domain_max) {
      status = check_count(*a.scale_up.domain_max, 1 << 20, "domain_max_accelerators", a.where);
    }
    if (!status) return status;
    if (a.memory <= Bytes(0) || a.memory_bandwidth <= BytesPerSecond(0)) {
      return input_error(a.where, fmt::format("\"{}\" has no memory or no bandwidth", a.id));
    }
  }
  return {};
}

Status CatalogChecker::check_nodes() {
  constexpr int kAcceleratorsMax = 64;  // a node's free accelerators are one 64-bit mask
  constexpr int kCoresMax = 1 << 16;    // thousandths of a core are counted in 32 bits
  for (NodeType& node : rows<NodeType>()) {
    Status status = resolve<Accelerator>(node.accelerator, node.where);
    if (status) {
      status = check_count(node.accelerators_per_node, kAcceleratorsMax, "accelerators_per_node",
                           node.where);
    }
    if (status && node.cpu_cores) {
      status = check_count(*node.cpu_cores, kCoresMax, "cpu_cores", node.where);
    }
    if (!status) return status;
    const Accelerator& accelerator = *catalog_.find<Accelerator>(node.accelerator);
    const int domain_max = accelerator.scale_up.domain_max.value_or(1);
    status = check_count(node.scale_up_domain_accelerators, domain_max,
                         "scaleup_domain_accelerators", node.where);
    if (!status) return status;
    if (node.cooling != "air" && node.cooling != "direct-liquid") {
      return input_error(node.where, fmt::format("cooling is \"{}\", expected air or direct-liquid",
                                                 node.cooling));
    }
    if (node.assumed_power && node.assumed_power->high < node.assumed_power->low) {
      return input_error(node.where, "assumed_watts: high is below low");
    }
  }
  return {};
}

Status CatalogChecker::check_default_nodes() {
  for (Accelerator& a : rows<Accelerator>()) {
    if (!a.default_node.empty()) {
      if (Status status = resolve<NodeType>(a.default_node, a.where); !status) return status;
    } else {
      const auto& nodes = catalog_.all<NodeType>();
      const auto first = std::find_if(nodes.begin(), nodes.end(), [&](const NodeType& node) {
        return node.accelerator == a.id;
      });
      if (first != nodes.end()) a.default_node = first->id;
    }
    if (a.default_node.empty()) {
      return input_error(a.where,
                         fmt::format("\"{0}\" belongs to no node type; add one, such as "
                                     "nodes: [{{id: {0}-8, like: dgx-h100, accelerator: {0}}}]",
                                     a.id));
    }
    if (catalog_.find<NodeType>(a.default_node)->accelerator != a.id) {
      return input_error(
          a.where, fmt::format("default_node \"{}\" holds other accelerators", a.default_node));
    }
  }
  return {};
}

Status CatalogChecker::check_systems() {
  for (SystemType& system : rows<SystemType>()) {
    Status status = resolve<NodeType>(system.node, system.where);
    if (status && system.fabric) status = resolve<ScaleOutFabric>(*system.fabric, system.where);
    if (status) status = check_system_topology(system);
    if (status) status = check_system_sizes(system, *catalog_.find<NodeType>(system.node));
    if (!status) return status;
  }
  return {};
}

Status CatalogChecker::check_prices() {
  for (AcceleratorPrice& price : rows<AcceleratorPrice>()) {
    Status status = resolve<Accelerator>(price.accelerator, price.where);
    if (!status) return status;
  }
  for (ServerCapex& capex : rows<ServerCapex>()) {
    if (const auto* system = catalog_.find<SystemType>(capex.node); system != nullptr) {
      capex.node = system->id;
      continue;
    }
    if (Status status = resolve<NodeType>(capex.node, capex.where); !status) return status;
  }
  return {};
}

Status CatalogChecker::check_software() {
  for (SoftwareStack& stack : rows<SoftwareStack>()) {
    Status status = resolve<Framework>(stack.framework, stack.where);
    if (status) status = resolve<Platform>(stack.platform, stack.where);
    if (!status) return status;
  }
  for (StackException& exception : rows<StackException>()) {
    Status status = resolve<Framework>(exception.framework, exception.where);
    if (status) status = resolve<Accelerator>(exception.accelerator, exception.where);
    if (!status) return status;
  }
  for (Supply& supply : rows<Supply>()) {
    Status status = resolve<Accelerator>(supply.accelerator, supply.where);
    if (status) status = resolve<Platform>(supply.platform, supply.where);
    if (status) status = resolve<ExportClass>(supply.export_class, supply.where);
    if (!status) return status;
  }
  return {};
}

Status CatalogChecker::check_facility() {
  for (const CoolingClass& cooling : catalog_.all<CoolingClass>()) {
    const bool pue_ok = cooling.pue.size() == 2 && cooling.pue[0] >= 1 &&
                        cooling.pue[1] >= cooling.pue[0] && cooling.pue[1] <= 3;
    if (!pue_ok) return input_error(cooling.where, "pue: expected [low, high] between 1 and 3");
    if (cooling.liquid_capture_fraction < 0 || cooling.liquid_capture_fraction > 1) {
      return input_error(cooling.where, "liquid_capture_fraction: expected 0 to 1");
    }
  }
  return {};
}

}  // namespace orrery
