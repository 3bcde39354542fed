// planner/fleet_machines.hpp - the machines that can be cut out of a fleet: each node type of each
// site, in whole nodes, powers of two and all of them.
//
// A machine is the canonical piece of its size: its nodes fill scale-up domains, then units under
// one leaf, then pods, so that it spans as few tiers as its size allows. Present use and failures
// are the scheduler's concern.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fleet/topology.hpp"
#include "planner/planner.hpp"

namespace orrery {

struct FleetMachines {
  std::vector<MachineChoice> choices;  ///< by site, node type and size
  std::vector<std::string> skipped;    ///< node types of which no machine can be made, and why
};

/// All nodes of one type at one site.
struct FleetPool {
  std::string label;
  FleetTypeId type;
  DomainId site;
  const Accelerator* accelerator = nullptr;
  const NodeType* node = nullptr;
  std::uint64_t accelerators = 0;
  std::uint64_t owned = 0;        ///< number of these that the operator owns
  std::uint32_t domain = 1;       ///< accelerators of a scale-up domain, or of a node if larger
  std::optional<Machine> joined;  ///< all nodes with the network between them; none: there is none
  EconomicsOptions economics;
};
/// The pools by site and node type; `economics` as for machines_of(), owned if most of the
/// accelerators are. They point into the topology and its catalog.
[[nodiscard]] std::vector<FleetPool> fleet_pools(const Topology& topology,
                                                 const EconomicsOptions& economics);

/// `economics` is what the user stated; figures that were not stated are those of each site,
/// including whether most of its nodes are owned. The topology and its catalog must outlive the
/// machines. O(nodes).
[[nodiscard]] FleetMachines machines_of(const Topology& topology,
                                        const EconomicsOptions& economics);

/// So many accelerators of one type, equal numbers in as few nodes as possible, from the largest
/// pool of that type (ties: the first), with the network between its nodes even if they fit into
/// one. Errors: kInfeasible, no pool has so many.
struct FleetPiece {
  FleetTypeId type;
  std::uint64_t accelerators = 1;
};
[[nodiscard]] Result<MachineChoice> machine_with(const Topology& topology, const FleetPiece& piece,
                                                 const EconomicsOptions& economics);

/// Splits the last tier where the tree above units of `unit` ranks (then pods) carries less than
/// the NICs below: `oversubscription` to 1.
void oversubscribe(Machine& machine, std::uint64_t unit, double oversubscription);

}  // namespace orrery
