// scheduler/power/gang_power.hpp - what a placed gang adds to the planned power, and the clock at
// which it may run.
#pragma once

#include <vector>

#include "scheduler/power/power_budget.hpp"
#include "scheduler/power/power_clock.hpp"
#include "scheduler/request/gang_terms.hpp"
#include "scheduler/request/placed_gang.hpp"
#include "scheduler/situation.hpp"

namespace orrery {

/// Devices of a gang by node, shares as fractions.
[[nodiscard]] std::vector<NodeShare> shares_of(const PlacedGang& gang);

/// The run time of a job with these gangs; none: the job runs until it is stopped.
[[nodiscard]] std::optional<Duration> longest_of(std::span<const GangTerms> gangs);

/// The inputs of the clocks at which a placed gang can run.
struct GangClocks {
  const PowerModel* model = nullptr;  ///< power model of its devices; none: not known
  double clock_bound = 1;             ///< part of the run time that scales with the clock
};

/// The clocks of a gang follow from the plan of its terms and the power model of its devices.
[[nodiscard]] GangClocks clocks_of(const Situation& situation, const JobRequest& job,
                                   const PlacedGang& gang, const GangTerms& terms);

/// The clock steps of a gang; empty where the power of its devices is not known.
[[nodiscard]] std::vector<ClockStep> ladder_of(const GangClocks& clocks);

/// The draw of a gang beyond the idle draw of its nodes, while each device draws `each`. O(nodes).
[[nodiscard]] std::vector<NodeDraw> draws_of_gang(const PowerTree& tree, const PlacedGang& gang,
                                                  Watts each);

/// The power budget and its caps, and the clocks that may be lowered.
struct PowerQuestion {
  const PowerBudget& budget;
  const PowerCaps& caps;
  GangClocks clocks;  ///< clocks of the gang; no model: its clock is fixed
};

/// Leaves the terms as they are where the gang fits under every cap, else lowers its clock (and so
/// lengthens its run) until it does, or returns what is missing at the lowest clock. O(nodes x
/// depth).
[[nodiscard]] std::optional<PowerShortfall> settle_power(const PowerQuestion& question,
                                                         const PlacedGang& gang, GangTerms& terms);

}  // namespace orrery
