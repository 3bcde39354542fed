// fleet/network/dragonfly.hpp - builds dragonfly and dragonfly+ networks.
//
// Dragonfly (J. Kim, W. J. Dally, S. Scott and D. Abts, "Technology-driven, highly-scalable
// dragonfly topology", ISCA 2008): groups of `a` routers, each with `p` NIC ports, a cable to every
// other router of its group and `h` cables to other groups; balanced when a = 2p = 2h. Ports of a
// router: p + a - 1 + h.
// Dragonfly+ (A. Shpiner et al., "Dragonfly+: low cost topology for scaling datacenters", HiPINEB
// 2017): a group is `a` leaves of `p` NIC ports and as many spines, each leaf with a cable to each
// spine and each spine with `h` cables to other groups; balanced when p = a = h. Ports of a leaf:
// p + a, of a spine a + h.
#pragma once

#include <optional>

#include "base/error.hpp"
#include "base/quantity.hpp"
#include "fleet/network/fabric.hpp"

namespace orrery {

struct DragonflyParameters {
  int nodes = 0;
  int nics_per_node = 0;
  int radix = 0;  ///< ports of every switch
  BytesPerSecond nic_bandwidth;
  std::optional<int> terminals = std::nullopt;                ///< p: NIC ports of a router or leaf
  std::optional<int> routers_per_group = std::nullopt;        ///< a: routers, or leaves
  std::optional<int> global_links_per_router = std::nullopt;  ///< h: of a router or spine
  enum class Variant { kDragonfly, kPlus } variant = Variant::kDragonfly;
};

/// Nodes fill routers, and routers groups, in order; all NICs of a node are on one router. Open
/// parameters follow from the given ones by the balance: a dragonfly p = (radix + 1) / 4, a = 2p, h
/// = p; a dragonfly+ a = radix / 2, p = radix - a, h = radix - a. Every group has a * h cables to
/// the others, spread evenly: the numbers between any two groups differ by at most one, and the
/// routers of a group take turns. (With an odd number of groups and an odd remainder, one port per
/// group stays free.) A single group has only the routers its nodes need, and no global cables.
/// Errors (no position): kInput for parameters that make no sense, kInfeasible for more ports than
/// the radix, a node that does not fit a router, or more than a * h + 1 groups. O(ports + switches
/// + links).
[[nodiscard]] Result<Fabric> build_dragonfly(const DragonflyParameters& parameters);

}  // namespace orrery
