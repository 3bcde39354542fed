// perf/machine/placement.hpp - where the ranks of a plan lie on a real fleet, as far as their cost
// depends on it: how many share a scale-up domain, how far apart their nodes are, what is left of
// the links between them.
//
// Computed once a placement from the devices of a gang and a view; pricing a plan on it is then as
// cheap as on the canonical machine (TrainingModel::reprice). A value.
#pragma once

#include "fleet/network/fabric.hpp"
#include "fleet/rank_map.hpp"
#include "fleet/view.hpp"
#include "perf/machine/collective.hpp"

namespace orrery {

struct Placement {
  /// Ranks of the gang in the scale-up domain (the node, where no links join its devices) that
  /// holds fewest; 0: unknown.
  double domain_ranks = 0;
  /// Highest part of the scale-out network between its nodes; kNone: no fabric joins them all.
  NetworkTier tier = NetworkTier::kLeaf;
  /// Part of a NIC's bandwidth that reaches the other nodes: the worst of the gang's port links
  /// (health x (1 - load)) and of the uplinks of its leaves, shared by the gang's ports below them.
  double scale_out_quality = 1;
};

/// Precondition: the gang as in fleet/rank_map.hpp, of the view's fleet. Cost: O(ports of its nodes
/// + uplinks of the leaves used); no allocation within one node.
[[nodiscard]] Placement placement_of(std::span<const NodeDevices> gang, const FleetView& view);

/// Returns the network as the ranks of the placement use it.
[[nodiscard]] Network network_at(const Network& canonical, const Placement& placement);

}  // namespace orrery
