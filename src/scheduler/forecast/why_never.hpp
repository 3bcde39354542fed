// scheduler/forecast/why_never.hpp - which part of a request is too much for a fleet, even when
// nothing runs.
#pragma once

#include <string>

#include "scheduler/request/request.hpp"

namespace orrery {

class PristineFleet;

/// Returns the key of the job spec that requests too much, the requested amount, and the most that
/// the fleet has: "topology.required: no rack has 16 nodes of h100; the largest has 4". Where
/// several are too much, the first of: accelerators, their number on a node, the host's resources,
/// and then the first requirement without which the gang would fit. Precondition: the gang does not
/// fit. O(nodes + places), some placements.
[[nodiscard]] std::string why_never(PristineFleet& fleet, const GangRequest& gang);

/// Why the gangs of a job, each of which fits alone, do not fit together. O(nodes).
[[nodiscard]] std::string why_never_together(const PristineFleet& fleet, const JobRequest& job);

}  // namespace orrery
