// fleet/network/fabric.hpp - the scale-out network as a graph: NIC ports, switches and the cables
// between them.
//
// Built once by fat_tree.hpp or dragonfly.hpp, then immutable and safe to read from any thread.
// Endpoints are local indexes 0..nodes-1; the fleet maps its NodeIds onto them. Health and load are
// kept elsewhere, in tables indexed by FabricLinkId.
//
// Invariants: switches are in order of tier; every switch link joins a lower-numbered switch to a
// higher-numbered one, and the links are sorted by (lower, upper), without duplicates; two nodes
// share a leaf by any pair of ports exactly when they do by port 0.
//
// Cost: 4 bytes per port, 12 per switch, 6 per link between switches (parallel cables are one
// link): 12.6 MB for 131,072 nodes of 8 rails.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/format/field_reader.hpp"
#include "base/id.hpp"
#include "base/quantity.hpp"

namespace orrery {

/// A link of one Fabric: port links come first, by node and port, then links between switches.
using FabricLinkId = Id<struct FabricLinkTag>;
/// Position among the switches of one Fabric.
using SwitchIndex = Id<struct SwitchTag>;

enum class NetworkKind : std::uint8_t {
  kUnconnected,           ///< no network between the nodes
  kSingleSwitch,          ///< one switch, or one in each plane
  kFatTree,               ///< all NICs of a node under one leaf
  kRailOptimizedFatTree,  ///< NIC r of every node of a unit under leaf r of the unit
  kRailOnlyFatTree,       ///< a tree for each rail, nothing between the rails
  kDragonfly,
  kDragonflyPlus,
};

inline std::array<EnumWord<NetworkKind>, 7> enum_words(NetworkKind) {
  return {{{"unconnected", NetworkKind::kUnconnected},
           {"single-switch", NetworkKind::kSingleSwitch},
           {"fat-tree", NetworkKind::kFatTree},
           {"rail-optimized-fat-tree", NetworkKind::kRailOptimizedFatTree},
           {"rail-only-fat-tree", NetworkKind::kRailOnlyFatTree},
           {"dragonfly", NetworkKind::kDragonfly},
           {"dragonfly+", NetworkKind::kDragonflyPlus}}};
}

/// The highest part of the network that traffic between two nodes must cross.
enum class NetworkTier : std::int8_t {
  kNode = -1,  ///< none: both are the same node
  kLeaf = 0,   ///< a leaf (dragonfly: router) that both sit under
  kSpine = 1,  ///< spines of their pod (dragonfly: links inside their group)
  kCore = 2,   ///< cores (dragonfly: links between groups)
  kNone = 3,   ///< nothing joins them
};

struct Switch {
  std::uint8_t tier = 0;  ///< 0 leaf or dragonfly router, 1 spine, 2 core
  /// Which of the disjoint networks it belongs to. Rail-only: the number of the port it serves.
  std::uint8_t plane = 0;
  std::uint16_t position = 0;  ///< among its tier, plane and group; a rail-optimised leaf's rail
  /// Leaf: scalable unit. Spine: pod. Core: the spine position it serves. Dragonfly: group.
  std::uint32_t group = 0;

  friend bool operator==(const Switch&, const Switch&) = default;
};

/// All cables between two switches.
struct SwitchLink {
  SwitchIndex lower;
  SwitchIndex upper;
  std::uint16_t cables = 0;

  friend bool operator==(const SwitchLink&, const SwitchLink&) = default;
};

/// A NIC port, or one plane's share of it: with P planes, NIC n has ports n*P to n*P + P-1.
struct FabricPort {
  std::uint32_t node = 0;
  std::uint32_t port = 0;

  friend bool operator==(const FabricPort&, const FabricPort&) = default;
};

/// The result of a builder; the invariants of the file hold for it.
struct FabricParts {
  NetworkKind kind = NetworkKind::kUnconnected;
  std::uint32_t nodes = 0;
  std::uint32_t ports_per_node = 0;
  BytesPerSecond port_bandwidth;   ///< per direction, of one port
  BytesPerSecond cable_bandwidth;  ///< per direction, of one cable between switches
  std::vector<Switch> switches;
  std::vector<SwitchIndex> leaf_of_port;  ///< index: node * ports_per_node + port
  std::vector<SwitchLink> links;
};

class Fabric {
 public:
  /// The links from one switch to higher-numbered ones: link first + i has cables[i] cables to
  /// uppers[i].
  struct Uplinks {
    FabricLinkId first;
    std::span<const SwitchIndex> uppers;
    std::span<const std::uint16_t> cables;
  };

  /// A fabric without nodes.
  Fabric() = default;

  /// Precondition: the invariants of the file. O(ports + switches + links).
  explicit Fabric(FabricParts parts);

  [[nodiscard]] NetworkKind kind() const { return kind_; }
  [[nodiscard]] std::uint32_t node_count() const { return nodes_; }
  [[nodiscard]] std::uint32_t ports_per_node() const { return ports_per_node_; }
  [[nodiscard]] BytesPerSecond port_bandwidth() const { return port_bandwidth_; }
  [[nodiscard]] BytesPerSecond cable_bandwidth() const { return cable_bandwidth_; }

  [[nodiscard]] std::span<const Switch> switches() const { return switches_; }
  /// Number of switches in a tier: 0 leaves or routers, 1 spines, 2 cores.
  [[nodiscard]] std::uint32_t switches(int tier) const;
  /// Number of cables between a tier and the next; in a dragonfly: 0 inside groups, 1 between
  /// groups.
  [[nodiscard]] std::uint64_t cables(int tier) const;

  /// Number of port links and switch links together.
  [[nodiscard]] std::uint32_t link_count() const;
  [[nodiscard]] bool is_port_link(FabricLinkId link) const;
  /// The link between a port and its leaf.
  [[nodiscard]] FabricLinkId link_of_port(FabricPort port) const;
  /// The port of a port link.
  [[nodiscard]] FabricPort port_of(FabricLinkId link) const;
  /// Returns a link that is not a port link. O(log switches).
  [[nodiscard]] SwitchLink switch_link(FabricLinkId link) const;
  /// Bandwidth per direction of all cables of a link.
  [[nodiscard]] BytesPerSecond bandwidth(FabricLinkId link) const;

  [[nodiscard]] SwitchIndex leaf_of(FabricPort port) const;
  /// Links from a leaf to spines, or a spine to cores; in a dragonfly, to higher-numbered routers.
  /// Views into this fabric.
  [[nodiscard]] Uplinks uplinks(SwitchIndex from) const;

  /// How far apart two nodes are by their nearest ports. O(1).
  [[nodiscard]] NetworkTier tier_between(std::uint32_t a, std::uint32_t b) const;

  /// Bandwidth per direction between two halves of the nodes. A fat tree: the least of half the NIC
  /// bandwidth, half the leaf uplinks and half the spine uplinks, which is the cut between two
  /// halves of the nodes, leaves or pods when these are full and even in number. A dragonfly: the
  /// least of half the NIC bandwidth and the cables that join two halves of the groups, with g
  /// groups floor(g/2) * ceil(g/2) of the g * (g-1) / 2 equal shares; for a single group it is
  /// computed over its routers (dragonfly+: half the leaf uplinks).
  [[nodiscard]] BytesPerSecond bisection() const { return bisection_; }

  /// Bandwidth from below over bandwidth to above, of the worst switch of the tier: 0 a leaf, 1 a
  /// spine. In a dragonfly: 0 a router's ports over its links inside the group, 1 a group's ports
  /// over its links to others. 1 if there is no tier above. Below 1 when the ports are underused.
  [[nodiscard]] double oversubscription(int tier) const;

  /// Bytes of memory that the graph takes.
  [[nodiscard]] Bytes footprint() const;

  friend bool operator==(const Fabric&, const Fabric&) = default;

 private:
  [[nodiscard]] bool is_dragonfly() const;
  [[nodiscard]] bool inside_group(SwitchIndex a, SwitchIndex b) const;
  void check(const FabricParts& parts) const;
  void pack(const std::vector<SwitchLink>& links);
  [[nodiscard]] BytesPerSecond measure_bisection() const;
  void measure_tree_oversubscription();
  void measure_dragonfly_oversubscription();

  NetworkKind kind_ = NetworkKind::kUnconnected;
  std::uint32_t nodes_ = 0;
  std::uint32_t ports_per_node_ = 0;
  std::uint32_t groups_ = 0;  ///< groups of a dragonfly
  BytesPerSecond port_bandwidth_;
  BytesPerSecond cable_bandwidth_;
  BytesPerSecond bisection_;
  std::array<double, 2> oversubscription_{1, 1};
  std::array<std::uint32_t, 3> tier_sizes_{};
  std::array<std::uint64_t, 2> tier_cables_{};
  std::vector<Switch> switches_;
  std::vector<SwitchIndex> leaf_of_port_;
  std::vector<std::uint32_t> first_uplink_;  ///< by switch, and one past the last
  std::vector<SwitchIndex> uppers_;          ///< by switch link
  std::vector<std::uint16_t> cables_;        ///< by switch link
};

}  // namespace orrery
