// perf/placement.hpp - where the ranks of a plan lie on a real fleet, as far as their cost depends
// on it: how many share a scale-up domain, how far apart their nodes are, what is left of the links
// between them.
//
// Computed once a placement from a rank map and a view; pricing a plan on it is then as cheap as on
// the canonical machine (TrainingModel::reprice). A value.
#pragma once

#include "fleet/fabric.hpp"
#include "fleet/rank_map.hpp"
#include "fleet/view.hpp"
#include "perf/collective.hpp"

namespace orrery {

struct Placement {
  double domain_ranks = 0;  ///< of the gang, in the scale-up domain that holds fewest; 0: unknown
  NetworkTier tier = NetworkTier::kLeaf;  ///< highest part of the scale-out network between nodes
  /// Part of a NIC's bandwidth that reaches the other nodes: the worst of the gang's port links
  /// (health x (1 - load)) and of the uplinks of its leaves, shared by the gang's ports below them.
  double scale_out_quality = 1;
};

/// Cost: O(devices log devices + uplinks of the leaves used). Precondition: the map's devices are
/// of the view's fleet.
[[nodiscard]] Placement placement_of(const RankMap& map, const FleetView& view);

/// The network as the ranks of the placement see it.
[[nodiscard]] Network network_at(const Network& canonical, const Placement& placement);

}  // namespace orrery
