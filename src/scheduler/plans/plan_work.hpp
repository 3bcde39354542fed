// scheduler/plans/plan_work.hpp - finds the entries of a plan table, and which sizes are worth one.
//
// Called outside the scheduler's passes, when a job asks for plans that have not been made yet.
// Plans are made for the canonical piece of the largest pool of a type
// (planner/fleet_machines.hpp). Pure; sources and work must outlive the entries. Cost: a search,
// milliseconds.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "planner/fleet_machines.hpp"
#include "scheduler/plans/plan_table.hpp"

namespace orrery {

struct PlanSources {
  PlannerFacts facts;
  const Topology& topology;
  EconomicsOptions economics = {};  ///< what the operator stated; sites supply the rest
};

/// The `best` ways to do the work on a piece of the fleet: training plans of different degrees (tp,
/// cp, pp, ep) by ascending time; services by ascending dollars a token (joules where there is no
/// price). Rejections: kMemory, it does not fit; kStack, the inference engine does not run there;
/// kNever, any other rule, an unreachable latency or rate, more than the fleet has.
[[nodiscard]] PlanEntry plan_work(const PlanSources& sources, const Work& work,
                                  const FleetPiece& piece, std::size_t best);

struct CountRange {
  std::uint32_t min = 1;
  std::uint32_t max = 1;
};

/// Sizes in a range that are worth planning, ascending, for elastic jobs and for jobs that name no
/// size. Training: the ends of the range, powers of two up to a node, and powers of two of nodes
/// and of scale-up domains, as far as they have a plan. A service: the sizes that its layouts take
/// to serve the rate. Empty if the work does not run on the type.
[[nodiscard]] std::vector<std::uint32_t> counts_for(const PlanSources& sources, const Work& work,
                                                    FleetTypeId type, const CountRange& range);

}  // namespace orrery
