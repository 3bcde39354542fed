// twin/serving/demand_scaler.hpp - the autoscaler of a live service, asked by a modelled one.
//
// Each tick an Autoscaler (serving/scaling/autoscaler.hpp) sees what the controller of a live
// service would: requests that came, those that wait and run, the mean request that was answered in
// the newest five minutes, and the pace that a replica's warm-up would show.
#pragma once

#include <vector>

#include "serving/scaling/autoscaler.hpp"
#include "twin/serving/service_setup.hpp"

namespace orrery {

/// Preconditions: there is a group; the service has these groups; ticks are a second apart, or
/// less. Of several groups the pace is known before a replica has measured it, as a catalogue tells
/// it.
[[nodiscard]] ServiceScaler demand_scaler(const std::vector<ReplicaGroup>& groups,
                                          const ScaleTargets& targets);

}  // namespace orrery
