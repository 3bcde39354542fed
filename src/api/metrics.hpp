// api/metrics.hpp - the cluster in numbers, for Prometheus.
//
// Read from the state when it is asked for, and from what the controller counts since its start
// (executor/live_counts.hpp). Names and units follow Prometheus' conventions. On the controller's
// loop. Cost: O(nodes + jobs that have not ended).
#pragma once

#include <string>

#include "executor/controller.hpp"

namespace orrery {

/// In the text format.
[[nodiscard]] std::string metrics_text(const Controller& controller);

}  // namespace orrery
