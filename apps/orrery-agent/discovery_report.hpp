// orrery-agent/discovery_report.hpp - the discovered hardware of this machine, for people and for
// programs (`orrery-agent --discover`).
#pragma once

#include <string>

#include "base/format/field_writer.hpp"
#include "node/devices/discovery.hpp"
#include "node/machine/host_topology.hpp"

namespace orrery {

/// Borrows its constructor's arguments.
class DiscoveryReport {
 public:
  DiscoveryReport(const NodeInventory& inventory, const Discovery& discovery);

  [[nodiscard]] std::string text() const;
  /// Sizes are in bytes; unknown values are null.
  [[nodiscard]] Json json() const;

 private:
  [[nodiscard]] std::string device_line(const FoundAccelerator& device) const;

  const NodeInventory& inventory_;
  const Discovery& discovery_;
  HostTopology host_;
};

}  // namespace orrery
