#include "twin/outages/fault_scope.hpp"

#include <algorithm>

namespace orrery {
namespace {

const FabricInstance& fabric_of(const Topology& topology, LinkId link) {
  return *std::ranges::find_if(topology.fabrics(), [link](const FabricInstance& fabric) {
    return link.value() - fabric.first_link < fabric.graph.link_count();
  });
}

std::vector<LinkId> links_of(const FabricInstance& fabric, SwitchIndex at) {
  std::vector<LinkId> links;
  const Fabric& graph = fabric.graph;
  const auto add = [&](FabricLinkId link) {
    links.push_back(LinkId(fabric.first_link + link.value()));
  };
  for (std::uint32_t node = 0; node < graph.node_count(); ++node) {
    for (std::uint32_t port = 0; port < graph.ports_per_node(); ++port) {
      if (graph.leaf_of({node, port}) == at) add(graph.link_of_port({node, port}));
    }
  }
  for (std::uint32_t lower = 0; lower < graph.switches().size(); ++lower) {
    const Fabric::Uplinks up = graph.uplinks(SwitchIndex(lower));
    for (std::uint32_t k = 0; k < up.uppers.size(); ++k) {
      if (SwitchIndex(lower) == at || up.uppers[k] == at) add(FabricLinkId(up.first.value() + k));
    }
  }
  return links;
}

}  // namespace

std::vector<NodeId> nodes_struck(const Topology& topology, const FaultScope& scope) {
  if (const auto* node = std::get_if<NodeId>(&scope)) return {*node};
  if (const auto* device = std::get_if<DeviceId>(&scope)) return {topology.node_of(*device)};
  std::vector<NodeId> nodes;
  if (const auto* rack = std::get_if<DomainId>(&scope)) {
    const Domain& domain = topology.domain(*rack);
    nodes.reserve(domain.nodes);
    for (std::uint32_t i = 0; i < domain.nodes; ++i) {
      nodes.push_back(NodeId(domain.first_node.value() + i));
    }
  }
  return nodes;
}

std::vector<LinkId> links_struck(const Topology& topology, const FaultScope& scope) {
  if (const auto* link = std::get_if<LinkId>(&scope)) return {*link};
  const auto* place = std::get_if<SwitchPlace>(&scope);
  if (place == nullptr) return {};
  return links_of(topology.fabrics()[place->fabric.value()], place->at);
}

NodeId node_of_port(const Topology& topology, LinkId link) {
  const FabricInstance& fabric = fabric_of(topology, link);
  const FabricLinkId local(link.value() - fabric.first_link);
  if (!fabric.graph.is_port_link(local)) return {};
  return fabric.nodes[fabric.graph.port_of(local).node];
}

}  // namespace orrery
