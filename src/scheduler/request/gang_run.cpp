#include "scheduler/request/gang_run.hpp"

#include <algorithm>

#include "perf/machine/placement.hpp"

namespace orrery {
namespace {

double assumed_run(const PriceContext& context, const WaitingJob& job, const IdealGang& gang,
                   const PlanHere& here) {
  const RoleRequest& role = job.request->roles[gang.role];
  const GangOption& option = role.options[gang.option];
  const bool service = job.request->kind == JobKind::kServe;
  const double unknown = context.policy.unknown_run.value();
  if (service) return unknown;
  const PlannedWork* first = best_plan(context.situation.plans, role.options.front());
  const bool steps = here.plan != nullptr && here.plan->training() != nullptr && first != nullptr &&
                     first->training() != nullptr;
  if (!steps) return unknown / option.speed;
  return unknown * here.plan->step_seconds * here.ratio / first->step_seconds;
}

/// Seconds of work plus its start and the pauses for checkpoints.
double held_for(const PriceContext& context, const JobRequest& job, double work) {
  const double interval = job.checkpoint_interval.count_seconds();
  const bool saves = job.checkpoint_interval != Duration::max() && interval > 0;
  const double pauses = saves ? job.checkpoint_cost.count_seconds() / interval : 0;
  return context.situation.launch.count_seconds() + work * (1 + pauses);
}

}  // namespace

double hire_of(const DeviceCosts* costs) {
  return costs != nullptr && costs->hire ? costs->hire->value() : kAssumedHire;
}

const DeviceCosts* any_costs(const PriceContext& context, FleetTypeId type) {
  if (context.situation.costs == nullptr) return nullptr;
  for (const SiteFacts& site : context.view.topology().sites()) {
    if (const DeviceCosts* costs = context.situation.costs->find(type, site.domain)) return costs;
  }
  return nullptr;
}

const DeviceCosts* costs_at(const PriceContext& context, NodeId node) {
  if (context.situation.costs == nullptr) return nullptr;
  return context.situation.costs->at(context.view.topology(), node);
}

std::array<PricedPart, 2> parts_of(const PriceContext& context, const PlacedGang& gang) {
  if (context.situation.costs == nullptr) {
    return {PricedPart{nullptr, static_cast<double>(gang.allocation.devices())}};
  }
  return priced_parts(*context.situation.costs, context.view.topology(), gang.allocation);
}

double mean_hire(const std::array<PricedPart, 2>& parts) {
  if (parts[1].devices == 0) return hire_of(parts[0].costs);
  double hire = 0;
  double devices = 0;
  for (const PricedPart& part : parts) {
    hire += part.devices * hire_of(part.costs);
    devices += part.devices;
  }
  return hire / devices;
}

Watts draw_of(const PlannedWork* plan, const DeviceCosts* costs) {
  if (plan != nullptr && plan->power) return plan->power->total();
  if (costs != nullptr && costs->training()) return *costs->training();
  return {};
}

PlanHere fastest_plan_on(std::span<const PlannedWork> plans, std::span<const NodeDevices> ranks,
                         const FleetView& view) {
  const Placement placement = placement_of(ranks, view);
  for (const PlannedWork& plan : plans) {
    const PlannedTraining* training = plan.training();
    if (training != nullptr && !check_ranks(training->plan, ranks, view.topology())) continue;
    if (const std::optional<Repriced> here = reprice(plan, placement)) return {&plan, here->ratio};
  }
  return {};
}

std::optional<Duration> left_of(const WaitingJob& job, std::optional<Duration> whole) {
  if (!whole) return whole;
  const double restart = job.done > 0 ? job.request->restart.count_seconds() : 0;
  return Duration::from_seconds(whole->count_seconds() * (1 - job.done) + restart);
}

double ideal_seconds(const PriceContext& context, const WaitingJob& job, const IdealGang& gang,
                     const PlannedWork* plan) {
  const RoleRequest& role = job.request->roles[gang.role];
  const GangOption& option = role.options[gang.option];
  const std::optional<Duration> left =
      left_of(job, whole_run_time(*job.request, role, option, {plan, 1}));
  const double work = left ? left->count_seconds() : assumed_run(context, job, gang, {plan, 1});
  return std::max(held_for(context, *job.request, work), context.beside.until);
}

double seconds_of(const PriceContext& context, const WaitingJob& job, const PlacedGang& gang,
                  const GangTerms& terms) {
  double work = 0;
  if (terms.length) {
    work = terms.length->count_seconds();
  } else {
    const GangOption& option = job.request->roles[gang.role].options[gang.option];
    const PlanTable* plans = context.situation.plans;
    const PlanEntry* entry = plans != nullptr && option.plan ? plans->find(*option.plan) : nullptr;
    const PlannedWork* plan = entry != nullptr && *entry ? &entry->value()[terms.plan] : nullptr;
    work = assumed_run(context, job, {gang.role, gang.option, {}}, {plan, terms.ratio});
  }
  return std::max(held_for(context, *job.request, work), context.beside.until);
}

}  // namespace orrery
