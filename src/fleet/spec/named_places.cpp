#include "fleet/spec/named_places.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/nearest_name.hpp"

namespace orrery {

Result<std::vector<NodeId>> nodes_named(const Topology& topology, std::string_view name,
                                        const SourcePosition& where) {
  std::vector<NodeId> nodes;
  for (std::uint32_t i = 0; i < topology.node_count(); ++i) {
    if (topology.node_name(NodeId(i)) == name) nodes.push_back(NodeId(i));
  }
  for (std::uint32_t i = 0; nodes.empty() && i < topology.domains().size(); ++i) {
    if (topology.path(DomainId(i)) != name) continue;
    if (topology.domain(DomainId(i)).nodes == 0) {
      return input_error(where, fmt::format("{} has no nodes", name));
    }
    const Domain& domain = topology.domain(DomainId(i));
    nodes.reserve(domain.nodes);
    for (std::uint32_t n = 0; n < domain.nodes; ++n) {
      nodes.push_back(NodeId(domain.first_node.value() + n));
    }
  }
  if (!nodes.empty()) return nodes;
  std::vector<std::string> paths;
  for (std::uint32_t i = 0; i < topology.domains().size(); ++i) {
    paths.push_back(topology.path(DomainId(i)));
  }
  const std::vector<std::string_view> names(paths.begin(), paths.end());
  return input_error(where,
                     fmt::format("no node or domain \"{}\"{}", name, did_you_mean(name, names)));
}

Result<PowerDomainId> power_domain_named(const Topology& topology, std::string_view name,
                                         const SourcePosition& where) {
  std::string names;
  for (std::uint32_t i = 0; i < topology.power_domains().size(); ++i) {
    const PowerDomainId id(i);
    const std::string known = topology.power_name(id);
    if (known == name) return id;
    names += (names.empty() ? "" : ", ") + known;
  }
  return input_error(where, fmt::format("no power domain \"{}\"; there are {}", name,
                                        names.empty() ? "none" : names));
}

std::vector<LinkId> uplinks_of(const Topology& topology, std::span<const NodeId> nodes) {
  std::vector<LinkId> links;
  for (const FabricInstance& fabric : topology.fabrics()) {
    for (std::uint32_t n = 0; n < fabric.nodes.size(); ++n) {
      if (!std::binary_search(nodes.begin(), nodes.end(), fabric.nodes[n])) continue;
      for (std::uint32_t port = 0; port < fabric.graph.ports_per_node(); ++port) {
        const Fabric::Uplinks up = fabric.graph.uplinks(fabric.graph.leaf_of({n, port}));
        for (std::uint32_t i = 0; i < up.uppers.size(); ++i) {
          links.emplace_back(fabric.first_link + up.first.value() + i);
        }
      }
    }
  }
  std::sort(links.begin(), links.end());
  links.erase(std::unique(links.begin(), links.end()), links.end());
  return links;
}

}  // namespace orrery
