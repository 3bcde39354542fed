// scheduler/why_never.hpp - which part of a wish is too much for a fleet, even when nothing runs.
#pragma once

#include <string>

#include "scheduler/request.hpp"

namespace orrery {

class PristineFleet;

/// The key of the job spec that asks too much, what it asks, the most the fleet has: "topology.
/// required: no rack has 16 nodes of h100; the largest has 4". Where several ask too much, the
/// first of: accelerators, their number on a node, the host's resources, and then the first that
/// would have to go alone. Precondition: the gang does not fit. O(nodes + places), some placements.
[[nodiscard]] std::string why_never(PristineFleet& fleet, const GangRequest& gang);

/// Why the gangs of a job do not fit together, each of which does alone. O(nodes).
[[nodiscard]] std::string why_never_together(const PristineFleet& fleet, const JobRequest& job);

}  // namespace orrery
