#include "twin/design/design_candidate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fleet/rack_cooling.hpp"
#include "perf/software_release.hpp"
#include "planner/job_defaults.hpp"
#include "planner/launch/layout_text.hpp"
#include "planner/planner.hpp"
#include "planner/serving/serving_plan.hpp"
#include "scheduler/plans/work.hpp"

namespace orrery {
namespace {

/// The role that resolve_work takes: one role of one gang.
RoleSpec role_of(const DesignWork& work) {
  RoleSpec role;
  role.accelerators = work.accelerators;
  role.work = work.work;
  role.where = work.where;
  return role;
}

MaybeRate training_rate(const FactsView& facts, const DesignCandidate& candidate,
                        const DesignWork& work) {
  const Result<SizedWork> sized = resolve_work(role_of(work), work.kind, facts.models);
  if (!sized) return tl::unexpected(sized.error());
  const TrainingWork& training = *sized->work.training();
  PlanQuestion question;
  question.job = {.model = sized->work.model,
                  .sequence = training.sequence,
                  .global_batch = training.global_batch,
                  .precision = training.precision,
                  .task = training.task,
                  .release = newest_release().years,
                  .release_scope = ReleaseScope::kMegatron,
                  .bytes_per_token = work.bytes_per_token};
  const MachineRequest request{.accelerator = candidate.accelerator,
                               .accelerators = *work.accelerators};
  Result<Machine> machine = machine_of(facts.catalog, request);
  if (!machine) return forward_error(machine);
  question.machines = {
      {.label = fmt::format("{}:{}", candidate.accelerator->id, *work.accelerators),
       .machine = *std::move(machine),
       .request = request}};
  question.best = 1;
  const Result<PlanAnswer> answer = plan({facts.catalog, facts.calibration}, question);
  if (!answer) return tl::unexpected(answer.error());
  const PlanOffer& best = answer->plans.front();
  return WorkRate{
      .accelerators = *work.accelerators,
      .tokens = best.quote.tokens_per_second / *work.accelerators,
      .step_seconds = best.cost.seconds,
      .layout = fmt::format("{}, {}", word_of(training.precision.format), print_layout(best.plan))};
}

/// Instances fill whole nodes, as a service shares its nodes with no other job.
std::uint32_t service_accelerators(double instance, const DesignCandidate& candidate,
                                   const DesignWork& work) {
  const double each = candidate.node_accelerators();
  const double most =
      std::max({instance, each, static_cast<double>(work.accelerators.value_or(1))});
  return static_cast<std::uint32_t>(std::ceil(most / each) * each);
}

MaybeRate serving_rate(const FactsView& facts, const DesignCandidate& candidate,
                       const DesignWork& work) {
  const Result<const CatalogModel*> model = facts.models.require(work.work.model, work.where);
  if (!model) return tl::unexpected(model.error());
  ServingQuestion question;
  question.model = &(*model)->model;
  question.input = *work.work.input_tokens;
  question.output = *work.work.output_tokens;
  question.limits = {work.work.ttft, work.work.tpot};
  const Result<TrainingPrecision> precision = precision_named(work.work.precision);
  if (!precision) return input_error(work.where, precision.error().message);
  question.formats = {precision->format};
  ServingChoice choice = serving_choice(facts.catalog, *candidate.accelerator, std::nullopt);
  const bool priced = candidate.price.has_value();
  choice.economics.basis = priced ? PriceBasis::kOwned : PriceBasis::kOnDemand;
  question.machines = {std::move(choice)};
  question.objective = priced ? ServingObjective::kCost : ServingObjective::kEnergy;
  question.best = 1;
  const Result<ServingAnswer> answer = plan_serving({facts.catalog, facts.calibration}, question);
  if (!answer) return tl::unexpected(answer.error());
  const ServingOffer& best = answer->plans.front();
  return WorkRate{.accelerators = service_accelerators(best.accelerators(), candidate, work),
                  .tokens = best.prediction.output_tokens.value() / best.accelerators(),
                  .layout = fmt::format("{}, tp={:.0f} pp={:.0f} ep={:.0f}, {} in flight",
                                        print_numbers(best.numbers), best.plan.tp, best.plan.pp,
                                        best.plan.ep, print_count(best.concurrency))};
}

class CandidateFinder {
 public:
  CandidateFinder(const FactsView& facts, const DesignSpec& spec) : facts_(facts), spec_(spec) {}

  Result<std::vector<DesignCandidate>> find() {
    for (const DesignPart& part : spec_.exclude) {
      Result<const Accelerator*> type = facts_.catalog.require<Accelerator>(part.type, part.where);
      if (!type) return forward_error(type);
      excluded_.push_back(*type);
    }
    for (const DesignPart& part : spec_.candidates) {
      Result<const Accelerator*> type = facts_.catalog.require<Accelerator>(part.type, part.where);
      if (!type) return forward_error(type);
      if (Status added = add(**type, part.where); !added) return forward_error(added);
    }
    if (spec_.candidates.empty()) {
      for (const Accelerator& type : facts_.catalog.all<Accelerator>()) {
        // A type that lacks a figure is no candidate unless the spec names it.
        (void)add(type, {});
      }
    }
    if (!found_.empty()) return std::move(found_);
    return input_error(spec_.where, "candidates: expected at least one, found all excluded");
  }

 private:
  Status add(const Accelerator& type, const SourcePosition& where) {
    const auto same = [&](const DesignCandidate& other) { return other.accelerator == &type; };
    const bool out = std::find(excluded_.begin(), excluded_.end(), &type) != excluded_.end();
    if (out || std::any_of(found_.begin(), found_.end(), same)) return {};
    DesignCandidate made{.accelerator = &type, .node = &facts_.catalog.default_node(type)};
    if (planned_power(*made.node) <= Watts(0) || made.node->accelerators_per_node < 1) {
      return input_error(where, fmt::format("{}: the power of its node {} is not published",
                                            type.id, made.node->id));
    }
    made.power = planned_power(*made.node) / made.node_accelerators();
    Result<Site> site = site_of(facts_.catalog, *made.node, {.pue = spec_.site.pue});
    if (!site) return forward_error(site);
    made.pue = site->pue;
    Result<PurchasePrice> price =
        purchase_price({facts_.catalog, facts_.calibration, *site}, *made.node, {});
    const bool needs = spec_.site.budget || spec_.objective == DesignObjective::kWorkPerDollar;
    if (!price && needs) {
      return input_error(where, price.error().message + " (server_capex of a catalog overlay)");
    }
    if (price) made.price = *std::move(price);
    found_.push_back(std::move(made));
    return {};
  }

  const FactsView& facts_;
  const DesignSpec& spec_;
  std::vector<const Accelerator*> excluded_;
  std::vector<DesignCandidate> found_;
};

}  // namespace

Result<std::vector<DesignCandidate>> design_candidates(const FactsView& facts,
                                                       const DesignSpec& spec) {
  return CandidateFinder(facts, spec).find();
}

MaybeRate rate_of(const FactsView& facts, const DesignCandidate& candidate,
                  const DesignWork& work) {
  return work.serves() ? serving_rate(facts, candidate, work)
                       : training_rate(facts, candidate, work);
}

}  // namespace orrery
