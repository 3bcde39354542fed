// twin/protocol/protocol_site.hpp - a small fleet of one kind with the facts that control needs.
//
// Built by make(); serves any number of protocol worlds, which refer to it. Never changes.
#pragma once

#include <memory>

#include "control/setup.hpp"

namespace orrery {

class Catalog;

class ProtocolSite {
 public:
  /// The catalog must outlive it. Errors: the catalog has no such nodes.
  [[nodiscard]] static Result<std::unique_ptr<ProtocolSite>> make(const Catalog& catalog,
                                                                  std::size_t nodes);

  explicit ProtocolSite(Topology topology);
  ProtocolSite(const ProtocolSite&) = delete;
  ProtocolSite& operator=(const ProtocolSite&) = delete;

  [[nodiscard]] const Topology& topology() const { return topology_; }
  /// The setup of one controller after the other, without limits of power; refers to this site.
  [[nodiscard]] ControlSetup setup(const Policy& policy) const;
  /// Allows power caps from then on: clocks fall by the known draw of the accelerators.
  void limit_power(ControlSetup& setup) const;

 private:
  Topology topology_;
  PlaceTree tree_;
  PowerTree power_;
  FleetCosts costs_;
  TenantTree tenants_;
};

}  // namespace orrery
