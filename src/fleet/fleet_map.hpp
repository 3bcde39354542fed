// fleet/fleet_map.hpp - the ids of one version of a fleet in those of another.
//
// Ids are dense and follow the order of the fleet file, so a rack added in its middle shifts those
// of all later nodes; names stay. A map is made when the file of a running cluster changes. It is a
// value; fleet_map is pure. A node is the same in both fleets if its full name is
// (Topology::node_name) and its node type, accelerator type and number of devices are equal; else
// it retires from one and is added to the other. Its other facts, such as its rating, its rack if
// the spec names the node, or its scale-up domain, may differ. A group whose count changes from or
// to 1 changes the names of its pods or racks ("rack" or "rack-1"), and so those of unnamed nodes
// in them. Invariant: nodes[nodes_before[n]] == n wherever nodes_before[n] is valid, and the
// reverse; so for types.
#pragma once

#include <vector>

#include "base/error.hpp"
#include "fleet/ids.hpp"
#include "fleet/topology.hpp"

namespace orrery {

/// How the ids of one version of a fleet translate to another's.
struct FleetMap {
  std::vector<NodeId> nodes;                ///< by old node; invalid: retired
  std::vector<NodeId> nodes_before;         ///< by new node; invalid: added
  std::vector<FleetTypeId> types;           ///< by old accelerator type; each is still there
  std::vector<FleetTypeId> types_before;    ///< by new accelerator type; invalid: added
  std::vector<PowerDomainId> power_before;  ///< by new power domain; invalid: added

  [[nodiscard]] std::vector<NodeId> retired() const;  ///< old ids, ascending
  [[nodiscard]] std::vector<NodeId> added() const;    ///< new ids, ascending
  /// Whether each id means the same in both: prices alone have changed, or nothing.
  [[nodiscard]] bool same_ids() const;
};

/// Compares two fleets, whose catalogs may differ: types are the same if their catalog ids are.
/// Power domains are the same if their kinds and names are (Topology::power_name). Where several
/// have one name ("su-1" is the first of two pods "su", or a pod of that name), the first is the
/// first in the other fleet, the second the second. Errors (kInput, without a position): a site of
/// `from` that `to` lacks or has at another position; an accelerator type of `from` that `to`
/// lacks. O(nodes + domains) of both.
[[nodiscard]] Result<FleetMap> fleet_map(const Topology& from, const Topology& to);

}  // namespace orrery
