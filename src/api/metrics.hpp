// api/metrics.hpp - the cluster in numbers, for Prometheus.
//
// Read from the state when somebody asks; nothing is counted on the side. Names and units follow
// Prometheus' conventions. On the controller's loop. Cost: O(nodes).
#pragma once

#include <string>

#include "executor/controller.hpp"

namespace orrery {

/// In the text format.
[[nodiscard]] std::string metrics_text(const Controller& controller);

}  // namespace orrery
