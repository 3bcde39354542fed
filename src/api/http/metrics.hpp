// api/http/metrics.hpp - metrics of the cluster, for Prometheus.
//
// Read from the state when it is asked for, and from what the controller counts since its start
// (executor/live/live_counts.hpp). Names and units follow Prometheus' conventions. On the
// controller's loop. Cost: O(nodes + jobs that have not ended).
#pragma once

#include <string>

#include "executor/controller.hpp"
#include "executor/start/log_sight.hpp"

namespace orrery {

/// Returns the metrics in Prometheus' text format.
[[nodiscard]] std::string metrics_text(const Controller& controller);
/// Returns those of a standby, which are of the shared log alone.
[[nodiscard]] std::string metrics_text(const StandbyProgress& progress);

}  // namespace orrery
