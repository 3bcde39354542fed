#include "twin/plan_book.hpp"

#include "perf/machine/placement.hpp"
#include "scheduler/request/gang_run.hpp"

namespace orrery {

PlannedRun PlanBook::of(const RunningJob& job, std::size_t gang, const State& state) {
  const PlacedGang& placed = job.gangs[gang];
  const GangOption& option = job.request->roles[placed.role].options[placed.option];
  const GangTerms& terms = job.terms[gang];
  if (!option.plan) return {nullptr, terms.ratio};
  const PlanEntry* known = state.plans().find(*option.plan);
  if (known != nullptr && *known && state.policy().choice == OptionChoice::kCheapest) {
    const PlannedWork& plan = known->value()[terms.plan];
    if (!links_changed_) return {&plan, terms.ratio};
    const auto here = reprice(plan, placement_of(placed.allocation.ranks, state.fleet().view()));
    return {&plan, here ? here->ratio : terms.ratio};
  }
  std::shared_ptr<const PlanEntry>& entry = found_[*option.plan];
  if (entry == nullptr && source_) entry = source_(*option.plan);
  if (entry == nullptr || !*entry) return {nullptr, terms.ratio};
  const PlanHere here =
      fastest_plan_on(entry->value(), placed.allocation.ranks, state.fleet().view());
  return here.plan != nullptr ? PlannedRun{here.plan, here.ratio}
                              : PlannedRun{nullptr, terms.ratio};
}

}  // namespace orrery
