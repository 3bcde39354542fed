// twin/traffic/job_traffic.hpp - which shared parts of the network the gangs of a fleet load.
//
// One per world, made from the fleet in its present state; the topology and the SharedLinks must
// outlive it. A resource is a cut: all cables, of one direction, between a part of a fabric and the
// rest of it, as one bundle. Parts are the leaf units (nodes under one leaf, or one leaf of each
// rail; a dragonfly's router) and the pods (a dragonfly's groups, and their cuts are its global
// links). Inside a bundle traffic spreads evenly. NICs, scale-up links and tori belong to one gang
// and are not modelled here.
//
// A gang has one flow over all the cuts it crosses, since its nodes wait for each other: the rate
// is that of one node, and the flow takes of each cut as many nodes' worth as cross there
// (crossing_nodes). Every node counts the same, so a full bundle is divided in proportion to node
// connections.
//
// Cost: 8 bytes a switch link beside the resources; start is O(nodes of the gang), stop O(cuts it
// crosses), link_changed O(links of the cuts it lies in).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fleet/rank_map.hpp"
#include "fleet/view.hpp"
#include "twin/traffic/max_min.hpp"
#include "twin/traffic/step_traffic.hpp"

namespace orrery {

/// The most ranks on a node; the ranks of the scale-up domain that holds fewest, at least those of
/// a node; the first node's NICs. Precondition: the gang is not empty. O(nodes).
[[nodiscard]] GangSplit layout_of(std::span<const NodeDevices> gang, const Topology& topology);

class JobTraffic {
 public:
  /// Adds the cuts of all fabrics, with capacities by the health of the links (LinkState::load is
  /// an output of this model, not an input). O(ports + links).
  JobTraffic(SharedLinks& links, const FleetView& view);

  /// Starts the flow of a gang; none: its traffic crosses no cut. The flow's rate is that of a node
  /// and its demand is traffic.demand(): pass the rate to stretched_step. A gang that no single
  /// fabric joins loads the cuts of each fabric it has nodes in, as far as there are cables around
  /// them.
  [[nodiscard]] std::optional<FlowId> start(std::span<const NodeDevices> gang,
                                            const StepTraffic& traffic);
  void stop(FlowId flow) { links_->remove_flow(flow); }

  /// What a gang takes of each cut for one byte/s of a node, ascending.
  [[nodiscard]] std::vector<ResourceUse> uses_of(std::span<const NodeDevices> gang,
                                                 const StepTraffic& traffic) const;

  /// Must be called when the state of the link has changed.
  void link_changed(const FleetView& view, LinkId link);

  /// The cut of the leaf unit a node is in, or of its pod. Preconditions: kLeaf or kSpine; the node
  /// is on the fabric and that has switches.
  [[nodiscard]] ResourceId cut_of(FabricId fabric, NodeId node, NetworkTier tier) const;

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  /// Parts of one fabric. Numbers of units and pods ascend with the nodes.
  struct Parts {
    const FabricInstance* fabric = nullptr;
    ResourceId first;  ///< units, then pods
    std::uint32_t units = 0;
    std::uint32_t pods = 0;
    std::vector<std::uint32_t> unit_of;  ///< by switch; kNone: above the leaves
    std::vector<std::uint32_t> pod_of;   ///< by switch; kNone: above the pods
    std::vector<std::uint32_t> pod_of_unit;
    std::vector<std::uint32_t> first_link;  ///< in `links`, by cut, and one past the last
    std::vector<std::uint32_t> links;       ///< FabricLinkIds, by cut
  };

  void add_fabric(const FabricInstance& fabric, const FleetView& view);
  [[nodiscard]] static std::uint32_t pod_of(const Fabric& graph, SwitchIndex index);
  static void number_parts(Parts& parts);
  static void list_links(Parts& parts);
  /// Visits the cuts of its fabric that a link between two switches belongs to: at most four.
  template <class Visit>
  static void for_each_cut(const Parts& parts, const SwitchLink& link, Visit&& visit);
  [[nodiscard]] static BytesPerSecond capacity(const Parts& parts, std::uint32_t cut,
                                               const FleetView& view);
  [[nodiscard]] static std::uint32_t unit_of(const Parts& parts, std::uint32_t node);

  SharedLinks* links_;
  std::vector<Parts> parts_;  ///< by fabric
};

}  // namespace orrery
