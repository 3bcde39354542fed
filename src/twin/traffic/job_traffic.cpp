#include "twin/traffic/job_traffic.hpp"

#include <algorithm>
#include <bit>

#include "base/assert.hpp"

namespace orrery {
namespace {

/// How many of a gang's nodes stand in one part of a fabric.
struct Inside {
  std::uint32_t part = 0;
  std::uint32_t nodes = 0;
};

void count(std::vector<Inside>& parts, std::uint32_t part, std::uint32_t nodes) {
  if (parts.empty() || parts.back().part != part) parts.push_back({part, 0});
  parts.back().nodes += nodes;
}

/// Positions of the gang's nodes in a fabric, ascending.
std::vector<std::uint32_t> positions(std::span<const NodeDevices> gang,
                                     std::span<const NodeId> nodes) {
  std::vector<std::uint32_t> found;
  if (nodes.back() < gang.front().node || gang.back().node < nodes.front()) return found;
  found.reserve(gang.size());
  auto at = nodes.begin();
  for (const NodeDevices& part : gang) {
    // Nodes adjacent in the gang are mostly adjacent in the fabric.
    if (at != nodes.end() && *at < part.node) at = std::lower_bound(at, nodes.end(), part.node);
    if (at == nodes.end()) break;
    if (*at == part.node) found.push_back(static_cast<std::uint32_t>(at++ - nodes.begin()));
  }
  return found;
}

/// Nodes' worth of a gang's total traffic that crosses a cut.
double multiplicity(const StepTraffic& traffic, std::uint32_t inside, std::size_t all) {
  const Bytes sent = traffic.node_bytes();
  double nodes = 0;
  for (const Exchange& exchange : traffic.sent()) {
    nodes +=
        crossing_nodes(exchange, inside, static_cast<double>(all)) * (exchange.node_bytes / sent);
  }
  return nodes;
}

bool is_dragonfly(const Fabric& graph) {
  return graph.kind() == NetworkKind::kDragonfly || graph.kind() == NetworkKind::kDragonflyPlus;
}

}  // namespace

GangSplit layout_of(std::span<const NodeDevices> gang, const Topology& topology) {
  ORRERY_ASSERT(!gang.empty(), "a gang holds something");
  int most = 0;
  for (const NodeDevices& node : gang) most = std::max(most, std::popcount(node.devices));
  std::uint32_t fewest = 0;
  for_each_domain_share(gang, topology, [&](NodeId, std::uint32_t devices) {
    fewest = fewest == 0 ? devices : std::min(fewest, devices);
  });
  const NodeType& node = topology.node_type(topology.group(gang.front().node));
  return {.node_ranks = static_cast<double>(most),
          .domain_ranks = std::max<double>(most, fewest),
          .node_bandwidth = node.compute_bandwidth};
}

JobTraffic::JobTraffic(SharedLinks& links, const FleetView& view) : links_(&links) {
  parts_.reserve(view.topology().fabrics().size());
  for (const FabricInstance& fabric : view.topology().fabrics()) add_fabric(fabric, view);
}

void JobTraffic::add_fabric(const FabricInstance& fabric, const FleetView& view) {
  Parts& parts = parts_.emplace_back();
  parts.fabric = &fabric;
  if (fabric.graph.ports_per_node() == 0) return;
  number_parts(parts);
  list_links(parts);
  for (std::uint32_t cut = 0; cut < parts.units + parts.pods; ++cut) {
    const ResourceId added = links_->add_resource(capacity(parts, cut, view));
    if (cut == 0) parts.first = added;
  }
}

std::uint32_t JobTraffic::unit_of(const Parts& parts, std::uint32_t node) {
  return parts.unit_of[parts.fabric->graph.leaf_of({node, 0}).value()];
}

std::uint32_t JobTraffic::pod_of(const Fabric& graph, SwitchIndex index) {
  const Switch& item = graph.switches()[index.value()];
  if (is_dragonfly(graph) || item.tier == 1) return item.group;
  if (item.tier > 1) return kNone;
  const Fabric::Uplinks up = graph.uplinks(index);
  // Leaves with nothing above them are one pod.
  return up.uppers.empty() ? 0 : graph.switches()[up.uppers.front().value()].group;
}

void JobTraffic::number_parts(Parts& parts) {
  const Fabric& graph = parts.fabric->graph;
  const std::span<const Switch> switches = graph.switches();
  parts.unit_of.assign(switches.size(), kNone);
  parts.pod_of.reserve(switches.size());
  for (std::uint32_t i = 0; i < switches.size(); ++i) {
    parts.pod_of.push_back(pod_of(graph, SwitchIndex(i)));
  }
  for (std::uint32_t node = 0; node < graph.node_count(); ++node) {
    if (unit_of(parts, node) == kNone) ++parts.units;
    for (std::uint32_t port = 0; port < graph.ports_per_node(); ++port) {
      parts.unit_of[graph.leaf_of({node, port}).value()] = parts.units - 1;
    }
    const std::uint32_t pod = parts.pod_of[graph.leaf_of({node, 0}).value()];
    if (parts.pod_of_unit.size() < parts.units) parts.pod_of_unit.push_back(pod);
    parts.pods = std::max(parts.pods, pod + 1);
  }
  // A part without nodes still passes others' traffic on, but no gang loads its cut.
  for (std::uint32_t& pod : parts.pod_of) {
    if (pod >= parts.pods) pod = kNone;
  }
}

template <class Visit>
void JobTraffic::for_each_cut(const Parts& parts, const SwitchLink& link, Visit&& visit) {
  const auto sides = [&](const std::vector<std::uint32_t>& part_of, std::uint32_t first) {
    const std::uint32_t lower = part_of[link.lower.value()];
    const std::uint32_t upper = part_of[link.upper.value()];
    if (lower == upper) return;
    if (lower != kNone) visit(first + lower);
    if (upper != kNone) visit(first + upper);
  };
  sides(parts.unit_of, 0);
  sides(parts.pod_of, parts.units);
}

void JobTraffic::list_links(Parts& parts) {
  const Fabric& graph = parts.fabric->graph;
  const auto for_each_entry = [&](auto&& visit) {
    for (std::uint32_t i = 0; i < graph.switches().size(); ++i) {
      const Fabric::Uplinks up = graph.uplinks(SwitchIndex(i));
      for (std::uint32_t k = 0; k < up.uppers.size(); ++k) {
        const SwitchLink link{SwitchIndex(i), up.uppers[k], up.cables[k]};
        for_each_cut(parts, link, [&](std::uint32_t cut) { visit(cut, up.first.value() + k); });
      }
    }
  };
  std::vector<std::uint32_t>& first = parts.first_link;
  first.assign(std::size_t{parts.units} + parts.pods + 1, 0);
  for_each_entry([&](std::uint32_t cut, std::uint32_t) { ++first[cut + 1]; });
  for (std::size_t cut = 1; cut < first.size(); ++cut) first[cut] += first[cut - 1];
  parts.links.resize(first.back());
  std::vector<std::uint32_t> next = first;
  for_each_entry([&](std::uint32_t cut, std::uint32_t link) { parts.links[next[cut]++] = link; });
}

BytesPerSecond JobTraffic::capacity(const Parts& parts, std::uint32_t cut, const FleetView& view) {
  BytesPerSecond sum;
  for (std::uint32_t i = parts.first_link[cut]; i < parts.first_link[cut + 1]; ++i) {
    const std::uint32_t link = parts.links[i];
    const LinkState& state = view.link(LinkId(parts.fabric->first_link + link));
    sum += parts.fabric->graph.bandwidth(FabricLinkId(link)) * static_cast<double>(state.health);
  }
  return sum;
}

void JobTraffic::link_changed(const FleetView& view, LinkId link) {
  for (const Parts& parts : parts_) {
    const Fabric& graph = parts.fabric->graph;
    if (link.value() - parts.fabric->first_link >= graph.link_count()) continue;
    const FabricLinkId local(link.value() - parts.fabric->first_link);
    if (graph.is_port_link(local)) return;
    for_each_cut(parts, graph.switch_link(local), [&](std::uint32_t cut) {
      links_->set_capacity(ResourceId(parts.first.value() + cut), capacity(parts, cut, view));
    });
    return;
  }
}

ResourceId JobTraffic::cut_of(FabricId fabric, NodeId node, NetworkTier tier) const {
  ORRERY_ASSERT(tier == NetworkTier::kLeaf || tier == NetworkTier::kSpine,
                "cuts lie around leaf units and pods");
  const Parts& parts = parts_[fabric.value()];
  const NodeDevices alone{node, 1};
  const std::vector<std::uint32_t> at = positions({&alone, 1}, parts.fabric->nodes);
  ORRERY_ASSERT(at.size() == 1 && parts.first.valid(), "a network joins the node");
  const std::uint32_t unit = unit_of(parts, at.front());
  const std::uint32_t cut =
      tier == NetworkTier::kLeaf ? unit : parts.units + parts.pod_of_unit[unit];
  return ResourceId(parts.first.value() + cut);
}

std::vector<ResourceUse> JobTraffic::uses_of(std::span<const NodeDevices> gang,
                                             const StepTraffic& traffic) const {
  std::vector<ResourceUse> uses;
  if (gang.size() <= 1 || traffic.node_bytes().value() <= 0) return uses;
  for (const Parts& parts : parts_) {
    if (!parts.first.valid()) continue;
    const std::vector<std::uint32_t> nodes = positions(gang, parts.fabric->nodes);
    if (nodes.empty()) continue;
    // One network joins the whole gang: it alone carries the traffic.
    if (nodes.size() == gang.size()) uses.clear();
    std::vector<Inside> units;
    for (const std::uint32_t node : nodes) count(units, unit_of(parts, node), 1);
    std::vector<Inside> pods;
    for (const Inside& unit : units) count(pods, parts.pod_of_unit[unit.part], unit.nodes);
    for (Inside& pod : pods) pod.part += parts.units;
    for (const std::vector<Inside>* cuts : {&units, &pods}) {
      for (const Inside& cut : *cuts) {
        if (parts.first_link[cut.part] == parts.first_link[cut.part + 1]) continue;
        const double worth = multiplicity(traffic, cut.nodes, gang.size());
        if (worth > 0) uses.push_back({ResourceId(parts.first.value() + cut.part), worth});
      }
    }
    if (nodes.size() == gang.size()) break;
  }
  return uses;
}

std::optional<FlowId> JobTraffic::start(std::span<const NodeDevices> gang,
                                        const StepTraffic& traffic) {
  const std::vector<ResourceUse> uses = uses_of(gang, traffic);
  if (uses.empty()) return std::nullopt;
  return links_->add_flow({.weight = 1, .demand = traffic.demand()}, uses);
}

}  // namespace orrery
