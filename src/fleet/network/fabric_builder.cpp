// The networks half of TopologyBuilder.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "fleet/network/dragonfly.hpp"
#include "fleet/network/fat_tree.hpp"
#include "fleet/network/switch_ports.hpp"
#include "fleet/spec/builder.hpp"

namespace orrery {
namespace {

// Nodes fill units and pods in order, so nodes of a unit that are neighbours in the fleet form a
// run.
std::vector<NodeRun> runs_within(const FabricInstance& instance, NetworkTier tier) {
  std::vector<NodeRun> runs;
  for (std::uint32_t i = 0; i < instance.nodes.size(); ++i) {
    const NodeId node = instance.nodes[i];
    const bool joined = i > 0 && node.value() == instance.nodes[i - 1].value() + 1 &&
                        instance.graph.tier_between(i - 1, i) <= tier;
    if (!joined) runs.push_back({node, 0});
    ++runs.back().count;
  }
  return runs;
}

bool any_group(const SiteSpec& site, const std::function<bool(const NodeGroupSpec&)>& is_wanted) {
  for (const HallSpec& hall : site.halls) {
    for (const PodSpec& pod : hall.pods) {
      for (const RackSpec& rack : pod.racks) {
        if (std::ranges::any_of(rack.nodes, is_wanted)) return true;
      }
    }
  }
  return false;
}

}  // namespace

Status TopologyBuilder::build_fabrics() {
  for (std::size_t i = 0; i < spec_.sites.size(); ++i) {
    for (const FabricSpec& fabric : spec_.sites[i].fabrics) {
      Status added = add_fabric(fabric, static_cast<std::uint32_t>(i));
      if (!added) return added;
    }
  }
  return {};
}

Status TopologyBuilder::add_fabric(const FabricSpec& spec, std::uint32_t site_index) {
  Result<const ScaleOutFabric*> type = catalog_.require<ScaleOutFabric>(spec.type, spec.where);
  if (!type) return forward_error(type);
  FabricInstance instance;
  instance.name = spec.name;
  instance.site = topology_.sites_[site_index].domain;
  instance.type = *type;
  instance.routing = spec.routing.value_or((*type)->routing.value_or(Routing::kEcmp));
  instance.in_network_reduction =
      spec.in_network_reduction.value_or((*type)->in_network_reduction.has_value());
  if (instance.in_network_reduction && !(*type)->in_network_reduction) {
    return input_error(spec.where, fmt::format("{} has no in-network reduction", (*type)->id));
  }
  Status selected = select_nodes(spec, spec_.sites[site_index], instance);
  if (!selected) return selected;
  if (instance.nodes.empty()) return {};
  Result<Fabric> graph = build_graph(spec, instance);
  if (!graph) {
    return input_error(spec.where,
                       fmt::format("fabric \"{}\": {}", spec.name, graph.error().message));
  }
  instance.graph = *std::move(graph);
  instance.leaf_units = runs_within(instance, NetworkTier::kLeaf);
  instance.pods = runs_within(instance, NetworkTier::kSpine);
  instance.first_link = topology_.link_count_;
  topology_.link_count_ += instance.graph.link_count();
  topology_.fabrics_.push_back(std::move(instance));
  return {};
}

// Selects none if all those that the fabric joins are groups with count 0.
Status TopologyBuilder::select_nodes(const FabricSpec& spec, const SiteSpec& site_spec,
                                     FabricInstance& instance) const {
  const Domain& site = topology_.domain(instance.site);
  std::vector<std::string> wanted;
  for (const std::string& name : spec.node_types) {
    Result<const NodeType*> type = catalog_.require<NodeType>(name, spec.where);
    if (!type) return forward_error(type);
    wanted.push_back((*type)->id);
  }
  const auto joins = [&](const NodeType& type) {
    return wanted.empty() || std::ranges::find(wanted, type.id) != wanted.end();
  };
  for (std::uint32_t i = 0; i < site.nodes; ++i) {
    const NodeId node(site.first_node.value() + i);
    if (joins(topology_.node_type(topology_.group(node)))) instance.nodes.push_back(node);
  }
  const auto joined_group = [&](const NodeGroupSpec& group) {
    return joins(*catalog_.find<NodeType>(group.type));
  };
  if (!instance.nodes.empty() || any_group(site_spec, joined_group)) return {};
  return input_error(spec.where, fmt::format("fabric \"{}\" joins no node of its site", spec.name));
}

// Uses the NICs of the first node's type; a fabric over different nodes needs equal NICs on each.
Result<Fabric> TopologyBuilder::build_graph(const FabricSpec& spec,
                                            const FabricInstance& instance) const {
  const NodeType& first = topology_.node_type(topology_.group(instance.nodes.front()));
  for (const NodeId node : instance.nodes) {
    const NodeType& type = topology_.node_type(topology_.group(node));
    if (type.compute_nics == first.compute_nics &&
        type.compute_nic_rate.quantity == first.compute_nic_rate.quantity) {
      continue;
    }
    return input_error({}, fmt::format("{} and {} have unlike NICs; give each its own fabric with "
                                       "node_types",
                                       first.id, type.id));
  }
  const int planes = std::max(1, spec.planes);
  const BytesPerSecond rate = nic_rate(*instance.type, first, planes);
  std::optional<int> radix = spec.switch_radix;
  if (!radix) radix = switch_ports(*instance.type, first, planes);
  if (!radix) {
    return input_error({}, fmt::format("the switch radix of {} is not published; give switch_radix",
                                       instance.type->id));
  }
  const auto nodes = static_cast<int>(instance.nodes.size());
  if (spec.topology == FabricTopology::kDragonfly ||
      spec.topology == FabricTopology::kDragonflyPlus) {
    DragonflyParameters parameters;
    parameters.nodes = nodes;
    parameters.nics_per_node = first.compute_nics;
    parameters.radix = *radix;
    parameters.nic_bandwidth = rate;
    if (spec.dragonfly) {
      parameters.terminals = spec.dragonfly->terminals;
      parameters.routers_per_group = spec.dragonfly->routers_per_group;
      parameters.global_links_per_router = spec.dragonfly->global_links_per_router;
    }
    parameters.variant = spec.topology == FabricTopology::kDragonfly
                             ? DragonflyParameters::Variant::kDragonfly
                             : DragonflyParameters::Variant::kPlus;
    return build_dragonfly(parameters);
  }
  FatTreeParameters parameters;
  parameters.nodes = nodes;
  parameters.nics_per_node = first.compute_nics;
  parameters.radix = *radix;
  parameters.nic_bandwidth = rate;
  parameters.rails = spec.topology == FabricTopology::kFatTree ? FatTreeParameters::Rails::kTogether
                     : spec.topology == FabricTopology::kRailOnlyFatTree
                         ? FatTreeParameters::Rails::kSeparate
                         : FatTreeParameters::Rails::kPerLeaf;
  parameters.leaf_oversubscription = spec.leaf_oversubscription;
  parameters.spine_oversubscription = spec.spine_oversubscription;
  parameters.planes = spec.planes;
  parameters.unit_nodes = spec.unit_nodes;
  parameters.pod_nodes = spec.pod_nodes;
  return build_fat_tree(parameters);
}

}  // namespace orrery
