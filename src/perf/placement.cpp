#include "perf/placement.hpp"

#include <algorithm>
#include <map>
#include <vector>

namespace orrery {
namespace {

/// Least bandwidth a broken or busy path is priced with, so that no price is infinite.
constexpr double kQualityMin = 1e-3;

double left_of(const LinkState& state) {
  return std::max(0.0, static_cast<double>(state.health) * (1 - static_cast<double>(state.load)));
}

/// Devices of the gang by the first device of their scale-up domain.
double fewest_in_a_domain(const RankMap& map, const Topology& topology) {
  std::map<std::uint32_t, std::uint32_t> domains;
  for (const DeviceId device : map.devices) {
    const NodeId node = topology.node_of(device);
    const NodeGroup& group = topology.group(node);
    const NodePlace& place = topology.place(node);
    const bool several_nodes = group.scale_up_devices > group.devices || group.torus.has_value();
    const std::uint32_t first =
        several_nodes
            ? topology.place(place.scale_up_first).first_device.value()
            : place.first_device.value() + (device.value() - place.first_device.value()) /
                                               group.scale_up_devices * group.scale_up_devices;
    ++domains[first];
  }
  std::uint32_t fewest = domains.empty() ? 0 : domains.begin()->second;
  for (const auto& [first, count] : domains) fewest = std::min(fewest, count);
  return fewest;
}

/// One fabric's part of the gang.
class FabricFootprint {
 public:
  FabricFootprint(const FabricInstance& fabric, const FleetView& view)
      : fabric_(fabric), view_(view) {}

  void add(std::uint32_t node) {
    const std::uint32_t ports = fabric_.graph.ports_per_node();
    double left = 0;
    for (std::uint32_t port = 0; port < ports; ++port) {
      const FabricPort at{node, port};
      left += left_of(state(fabric_.graph.link_of_port(at)));
      ++ports_below_[fabric_.graph.leaf_of(at).value()];
    }
    if (ports > 0) quality_ = std::min(quality_, left / ports);
    if (!nodes_.empty()) {
      tier_ = std::max(tier_, fabric_.graph.tier_between(nodes_.front(), node));
    }
    nodes_.push_back(node);
  }

  [[nodiscard]] NetworkTier tier() const { return tier_; }

  [[nodiscard]] double quality() const {
    double quality = quality_;
    if (tier_ >= NetworkTier::kSpine) {
      for (const auto& [leaf, ports] : ports_below_) {
        quality = std::min(quality, uplink_share(SwitchIndex(leaf), ports));
      }
    }
    return std::clamp(quality, kQualityMin, 1.0);
  }

 private:
  [[nodiscard]] const LinkState& state(FabricLinkId link) const {
    return view_.link(LinkId(fabric_.first_link + link.value()));
  }

  /// What the uplinks of a leaf carry over what the gang's ports below can send.
  [[nodiscard]] double uplink_share(SwitchIndex leaf, std::uint32_t ports) const {
    const Fabric::Uplinks up = fabric_.graph.uplinks(leaf);
    if (up.uppers.empty()) return 1;
    double carried = 0;
    for (std::size_t i = 0; i < up.uppers.size(); ++i) {
      const FabricLinkId link(up.first.value() + static_cast<std::uint32_t>(i));
      carried += up.cables[i] * left_of(state(link));
    }
    const double sent = ports * fabric_.graph.port_bandwidth().value();
    return carried * fabric_.graph.cable_bandwidth().value() / sent;
  }

  const FabricInstance& fabric_;
  const FleetView& view_;
  std::vector<std::uint32_t> nodes_;
  std::map<std::uint32_t, std::uint32_t> ports_below_;  ///< by leaf
  NetworkTier tier_ = NetworkTier::kNode;
  double quality_ = 1;
};

}  // namespace

Placement placement_of(const RankMap& map, const FleetView& view) {
  const Topology& topology = view.topology();
  Placement placement{.domain_ranks = fewest_in_a_domain(map, topology),
                      .tier = NetworkTier::kNode};
  std::vector<NodeId> nodes;
  for (const DeviceId device : map.devices) nodes.push_back(topology.node_of(device));
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  if (nodes.size() <= 1) return placement;
  std::size_t found = 0;
  for (const FabricInstance& fabric : topology.fabrics()) {
    FabricFootprint footprint(fabric, view);
    for (const NodeId node : nodes) {
      const auto at = std::lower_bound(fabric.nodes.begin(), fabric.nodes.end(), node);
      if (at == fabric.nodes.end() || *at != node) continue;
      footprint.add(static_cast<std::uint32_t>(at - fabric.nodes.begin()));
      ++found;
    }
    placement.tier = std::max(placement.tier, footprint.tier());
    placement.scale_out_quality = std::min(placement.scale_out_quality, footprint.quality());
  }
  if (found < nodes.size()) placement.tier = NetworkTier::kNone;
  return placement;
}

Network network_at(const Network& canonical, const Placement& placement) {
  Network network = canonical;
  if (network.count == 0) return network;
  if (placement.domain_ranks > 0 && network.count > 1) {
    const auto ranks = static_cast<std::uint64_t>(placement.domain_ranks);
    network.levels[0].size = std::min(network.levels[0].size, ranks);
  }
  Network::Level& out = network.levels[network.count - 1];
  out.bandwidth *= placement.scale_out_quality;
  out.all_to_all *= placement.scale_out_quality;
  // A switch more in each direction for every tier above the leaf.
  if (placement.tier > NetworkTier::kLeaf) {
    out.latency *= 1 + 0.4 * static_cast<double>(placement.tier);
  }
  return network;
}

}  // namespace orrery
