#include "twin/plan_book.hpp"

#include "perf/placement.hpp"

namespace orrery {

PlannedRun PlanBook::of(const RunningJob& job, std::size_t gang, const State& state) {
  const PlacedGang& placed = job.gangs[gang];
  const GangOption& option = job.request->roles[placed.role].options[placed.option];
  const GangTerms& terms = job.terms[gang];
  if (!option.plan) return {nullptr, terms.ratio};
  const PlanEntry* chosen_from = state.plans().find(*option.plan);
  if (chosen_from != nullptr && *chosen_from) {
    return {&chosen_from->value()[terms.plan], terms.ratio};
  }
  std::shared_ptr<const PlanEntry>& entry = found_[*option.plan];
  if (entry == nullptr && source_) entry = source_(*option.plan);
  if (entry == nullptr || !*entry) return {nullptr, terms.ratio};
  const FleetView view = state.fleet().view();
  const std::span<const NodeDevices> ranks = placed.allocation.ranks;
  const Placement placement = placement_of(ranks, view);
  for (const PlannedWork& plan : entry->value()) {
    const PlannedTraining* training = plan.training();
    if (training != nullptr && !check_ranks(training->plan, ranks, view.topology())) continue;
    if (const std::optional<Repriced> here = reprice(plan, placement)) return {&plan, here->ratio};
  }
  return {nullptr, terms.ratio};
}

}  // namespace orrery
