// serving/routing/route_targets.hpp - the latencies that a service promises. A plain value.
#pragma once

namespace orrery {

/// What the requests of a service are held to; 0: nothing.
struct RouteTargets {
  double ttft_s = 0;
  double tpot_s = 0;
};

}  // namespace orrery
