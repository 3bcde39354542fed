// scheduler/power/power_clock.hpp - the clocks a gang may run at, with its draw and its speed at
// each.
//
// A ladder is built once for a job's plan on a type of node and then only looked up. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <tl/expected.hpp>
#include <vector>

#include "perf/site/power.hpp"
#include "scheduler/power/power_budget.hpp"

namespace orrery {

/// One accelerator, with its share of the node, at one clock.
struct ClockStep {
  double clock = 1;       ///< relative to the clock of the model
  Watts each;             ///< mean draw
  double throughput = 1;  ///< relative to that of the first step

  /// Joules for work that takes a second at the first step.
  [[nodiscard]] Joules energy() const { return each * Seconds(1 / throughput); }
};

/// Clocks from 100 % down to 50 % in steps of 1 %, without those that draw no less than a faster
/// one, since a phase that stretches with the clock takes a larger share of the time. `load` is at
/// the model's clock. Errors: shares outside their range. At least one step; draw falls strictly,
/// throughput never rises.
[[nodiscard]] Result<std::vector<ClockStep>> clock_ladder(const PowerModel& model,
                                                          const PowerLoad& load);

/// Where a gang is and what it may draw. Precondition: the ladder comes from clock_ladder.
struct GangPower {
  std::span<const NodeShare> nodes;
  std::span<const ClockStep> ladder;
};

/// The step of the ladder with the highest clock at which the gang may start, or what it lacks at
/// the lowest. Cost: a copy of the budget, O(nodes x depth x log steps).
[[nodiscard]] tl::expected<std::size_t, PowerShortfall> clock_for(const PowerBudget& budget,
                                                                  const PowerCaps& caps,
                                                                  const GangPower& gang);

}  // namespace orrery
