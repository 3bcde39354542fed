// planner/infeasible.hpp - which limit leaves a job without a plan, and which changes would allow
// one.
#pragma once

#include "planner/planner.hpp"

namespace orrery {

/// `result` is that of a search without plans. Rules that refuse every split are an input error if
/// the user stated part of the layout. For memory, these changes are tried, each alone: the stated
/// dimensions left open, offloading, more accelerators of the same machine, more memory.
[[nodiscard]] Error why_no_plan(const PlannerFacts& facts, const PlanQuestion& question,
                                std::size_t machine, const SearchResult& result);

}  // namespace orrery
