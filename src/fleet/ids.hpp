// fleet/ids.hpp - the identifiers of a fleet: dense from 0, in topology order.
//
// Nodes are numbered depth first, so every domain holds a contiguous range of nodes; the devices of
// a node are contiguous too. Devices have an index that stays the same as long as the spec does.
#pragma once

#include "base/id.hpp"

namespace orrery {

using DomainId = Id<struct DomainTag>;  ///< fleet, site, hall, pod or rack
using NodeId = Id<struct NodeTag>;      ///< a server, tray or host
using DeviceId = Id<struct DeviceTag>;  ///< one accelerator
using PowerDomainId =
    Id<struct PowerDomainTag>;          ///< a utility feed, UPS, row, rack or cooling loop
using FabricId = Id<struct FabricTag>;  ///< one scale-out fabric of a site
using LinkId = Id<struct LinkTag>;      ///< a link of any fabric, fleet-wide
/// Position among the accelerator types present in a fleet.
using FleetTypeId = Id<struct FleetTypeTag>;

}  // namespace orrery
