// fleet/network/fat_tree.hpp - builds folded-Clos networks of one to three levels: plain,
// rail-optimised or rail-only, with oversubscription and planes.
//
// The rules, k being the radix, o1 and o2 the oversubscription of leaves and spines. Counts are per
// plane; a rail-only network is one tree per rail, the others are one tree.
//  Leaf      d1 = floor(k * o1 / (1 + o1)) ports down. A unit is d1 nodes, a leaf for each of their
//            NICs (rails), or d1 / NICs nodes under one leaf (plain). A leaf has
//            ceil(ports of a whole unit / o1) uplinks, of which a spine takes an equal share.
//  1 level   one leaf: nothing above it.
//  2 levels  at most k leaves: the fewest spines S that divide the uplinks u1 and have
//            leaves * u1 / S <= k ports. Dividing evenly is why tables have 18 and 36 spines where
//            16 and 32 had ports enough.
//  3 levels  pods of k/2 leaves, or of `pod_nodes`, in whole units. Of a pod's spines, the fewest
//            that divide u1 and need at most floor(k * o2 / (1 + o2)) ports down; each has
//            ceil(ports down / o2) up. The spines at one position of every pod share a group of
//            cores: the fewest that divide these uplinks, with a port for each cable.
// The rules give the switch and cable counts of the DGX SuperPOD reference architectures (B200,
// B300), which catalog/fabrics.yaml quotes and the tests compare with.
#pragma once

#include <cstdint>
#include <optional>

#include "base/error.hpp"
#include "base/quantity.hpp"
#include "fleet/network/fabric.hpp"

namespace orrery {

struct FatTreeParameters {
  int nodes = 0;
  int nics_per_node = 0;
  int radix = 0;  ///< ports of every switch
  BytesPerSecond nic_bandwidth;
  /// kTogether: a node's NICs share a leaf. kPerLeaf: NIC r on leaf r of the unit (rail-optimised).
  /// kSeparate: as kPerLeaf, and each rail is a tree of its own (rail-only).
  enum class Rails { kTogether, kPerLeaf, kSeparate } rails = Rails::kTogether;
  double leaf_oversubscription = 1;   ///< bandwidth down over up
  double spine_oversubscription = 1;  ///< used with three levels only
  int planes = 1;  ///< each NIC is split into as many ports, each in its own network
  std::optional<int> unit_nodes = std::nullopt;  ///< fewer than the number that fits under a leaf
  /// Rounded up to whole units. With a spine oversubscription other than 1, more than one pod makes
  /// the tree three levels even if two could hold it.
  std::optional<int> pod_nodes = std::nullopt;
};

/// Returns the most nodes that three levels without oversubscription join, in units as large as a
/// leaf allows.
[[nodiscard]] std::int64_t fat_tree_nodes_max(int radix, int nics_per_node,
                                              FatTreeParameters::Rails rails);

/// Nodes fill units, and units pods, in order. Errors (no position): kInput for parameters that
/// make no sense, kInfeasible, with the largest possible count, for a tree that would need a fourth
/// level or for units or pods that do not fit their switches. O(ports + switches + links).
[[nodiscard]] Result<Fabric> build_fat_tree(const FatTreeParameters& parameters);

}  // namespace orrery
