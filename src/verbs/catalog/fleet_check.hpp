// verbs/catalog/fleet_check.hpp - checks that the machines of a running cluster are alike: agents
// connected, programs of one version, kernels, drivers and firmware without drift.
#pragma once

#include <vector>

#include "node/machine/machine_check.hpp"
#include "orrery/v1/orrery.pb.h"

namespace orrery {

/// Nodes that never had an agent do not count for the usual version. Kernels are compared over all
/// nodes, drivers and firmware over those of one accelerator type; the most frequent version is
/// usual, of equally frequent ones the first by its bytes. O(nodes log nodes).
[[nodiscard]] std::vector<CheckFinding> check_fleet(const v1::Cluster& cluster,
                                                    const std::vector<v1::Node>& nodes);

}  // namespace orrery
