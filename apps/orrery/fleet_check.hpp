// apps/orrery/fleet_check.hpp - whether the machines of a running cluster are alike: agents there,
// programs of one version, kernels, drivers and firmware without drift.
#pragma once

#include <vector>

#include "node/machine_check.hpp"
#include "orrery/v1/orrery.pb.h"

namespace orrery {

/// Nodes that never had an agent have no say in what is usual. Kernels are compared over all nodes,
/// drivers and firmware over those of one accelerator type; what most have is usual, of equally
/// many the first by its bytes. O(nodes log nodes).
[[nodiscard]] std::vector<CheckFinding> check_fleet(const v1::Cluster& cluster,
                                                    const std::vector<v1::Node>& nodes);

}  // namespace orrery
