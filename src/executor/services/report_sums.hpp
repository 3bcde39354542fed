// executor/services/report_sums.hpp - what several gateways have measured of a service, together.
//
// Pure. Cost: O(tenants + buckets).
#pragma once

#include "serving/gateway_report.hpp"

namespace orrery {

void add(ArmReport& sum, const ArmReport& more);

/// Adds what another gateway measured. The window is the longest of both; canaries are not added
/// up, as gateways may know of different ones.
void add(ServiceReport& sum, const ServiceReport& more);

}  // namespace orrery
