// fleet/network/switch_ports.hpp - how many NICs a switch of a fabric serves, and at which rate.
//
// Pure functions of the catalog's rows. O(1).
#pragma once

#include <algorithm>
#include <optional>

#include "base/quantity.hpp"
#include "hardware/catalog.hpp"

namespace orrery {

/// Returns the rate of a NIC; in a slower port it runs at the port's rate.
[[nodiscard]] inline BytesPerSecond nic_rate(const ScaleOutFabric& fabric, const NodeType& node,
                                             int planes) {
  return std::min(node.compute_nic_rate.quantity, fabric.port_bandwidth * planes);
}

/// Returns how many NICs (or planes' shares of them) a switch serves: a port with two or four times
/// their rate serves two or four of them. None: the radix is not published.
[[nodiscard]] inline std::optional<int> switch_ports(const ScaleOutFabric& fabric,
                                                     const NodeType& node, int planes) {
  if (!fabric.switch_radix) return std::nullopt;
  const double ratio = fabric.port_bandwidth / (nic_rate(fabric, node, planes) / planes);
  return *fabric.switch_radix * (ratio >= 4 ? 4 : ratio >= 2 ? 2 : 1);
}

}  // namespace orrery
