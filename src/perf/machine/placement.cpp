#include "perf/machine/placement.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace orrery {
namespace {

/// Least bandwidth a broken or busy path is priced with, so that no price is infinite.
constexpr double kQualityMin = 1e-3;

double left_of(const LinkState& state) {
  return std::max(0.0, static_cast<double>(state.health) * (1 - static_cast<double>(state.load)));
}

/// One fabric's part of the gang. Nodes are added in ascending order.
class FabricFootprint {
 public:
  FabricFootprint(const FabricInstance& fabric, const FleetView& view)
      : fabric_(fabric), graph_(fabric.graph), view_(view) {
    slots_.fill(kNoSlot);
  }

  void add(std::uint32_t node) {
    const std::uint32_t ports = graph_.ports_per_node();
    double left = 0;
    for (std::uint32_t port = 0; port < ports; ++port) {
      const FabricPort at{node, port};
      left += left_of(state(graph_.link_of_port(at)));
      count_port(graph_.leaf_of(at), port % slots_.size());
    }
    if (ports > 0) quality_ = std::min(quality_, left / ports);
    if (nodes_ == 0) first_ = node;
    tier_ = std::max(tier_, graph_.tier_between(first_, node));
    ++nodes_;
  }

  [[nodiscard]] std::size_t nodes() const { return nodes_; }
  [[nodiscard]] NetworkTier tier() const { return tier_; }

  [[nodiscard]] double quality() {
    if (tier_ >= NetworkTier::kSpine) add_uplinks();
    return std::clamp(quality_, kQualityMin, 1.0);
  }

 private:
  static constexpr std::size_t kNoSlot = ~std::size_t{0};
  static constexpr std::size_t kSlots = 16;

  struct Leaf {
    SwitchIndex index;
    std::uint32_t ports = 0;  ///< of the gang below it
  };

  [[nodiscard]] const LinkState& state(FabricLinkId link) const {
    return view_.link(LinkId(fabric_.first_link + link.value()));
  }

  /// Neighbouring nodes have equal ports under one leaf: a counter a port seldom changes its leaf.
  void count_port(SwitchIndex leaf, std::size_t slot) {
    std::size_t& at = slots_[slot];
    if (at == kNoSlot || leaves_[at].index != leaf) {
      at = leaves_.size();
      leaves_.push_back({leaf, 0});
    }
    ++leaves_[at].ports;
  }

  void add_uplinks() {
    const auto before = [](const Leaf& a, const Leaf& b) { return a.index < b.index; };
    if (!std::is_sorted(leaves_.begin(), leaves_.end(), before)) {
      std::sort(leaves_.begin(), leaves_.end(), before);
    }
    for (std::size_t i = 0; i < leaves_.size();) {
      Leaf leaf = leaves_[i];
      for (++i; i < leaves_.size() && leaves_[i].index == leaf.index; ++i) {
        leaf.ports += leaves_[i].ports;
      }
      quality_ = std::min(quality_, uplink_share(leaf));
    }
  }

  /// What the uplinks of a leaf carry over what the gang's ports below can send; or a part of it
  /// that binds no more than what is known already.
  [[nodiscard]] double uplink_share(const Leaf& leaf) const {
    const Fabric::Uplinks up = graph_.uplinks(leaf.index);
    if (up.uppers.empty()) return 1;
    const double sent = leaf.ports * graph_.port_bandwidth().value();
    double carried = 0;
    double share = 0;
    for (std::size_t i = 0; i < up.uppers.size() && share < quality_; ++i) {
      const FabricLinkId link(up.first.value() + static_cast<std::uint32_t>(i));
      carried += up.cables[i] * left_of(state(link));
      share = carried * graph_.cable_bandwidth().value() / sent;
    }
    return share;
  }

  const FabricInstance& fabric_;
  const Fabric& graph_;
  const FleetView& view_;
  std::vector<Leaf> leaves_;               ///< one may stand several times
  std::array<std::size_t, kSlots> slots_;  ///< of leaves_, by port
  std::size_t nodes_ = 0;
  std::uint32_t first_ = 0;
  NetworkTier tier_ = NetworkTier::kNode;
  double quality_ = 1;
};

/// Devices of the gang in the scale-up domain that holds fewest.
std::uint32_t fewest_in_a_domain(std::span<const NodeDevices> gang, const Topology& topology) {
  std::uint32_t fewest = 0;
  for_each_domain_share(gang, topology, [&](NodeId, std::uint32_t devices) {
    fewest = fewest == 0 ? devices : std::min(fewest, devices);
  });
  return fewest;
}

}  // namespace

Placement placement_of(std::span<const NodeDevices> gang, const FleetView& view) {
  const Topology& topology = view.topology();
  Placement placement{.domain_ranks = static_cast<double>(fewest_in_a_domain(gang, topology)),
                      .tier = NetworkTier::kNode};
  if (gang.size() <= 1) return placement;
  bool joined = false;
  for (const FabricInstance& fabric : topology.fabrics()) {
    const auto& nodes = fabric.nodes;
    if (nodes.back() < gang.front().node || gang.back().node < nodes.front()) continue;
    FabricFootprint footprint(fabric, view);
    auto at = nodes.begin();
    for (const NodeDevices& part : gang) {
      // Nodes that follow each other in the gang mostly do so in the fabric.
      if (at != nodes.end() && *at < part.node) at = std::lower_bound(at, nodes.end(), part.node);
      if (at == nodes.end()) break;
      if (*at == part.node) footprint.add(static_cast<std::uint32_t>(at++ - nodes.begin()));
    }
    joined = joined || footprint.nodes() == gang.size();
    placement.tier = std::max(placement.tier, footprint.tier());
    placement.scale_out_quality = std::min(placement.scale_out_quality, footprint.quality());
  }
  if (!joined) placement.tier = NetworkTier::kNone;
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
