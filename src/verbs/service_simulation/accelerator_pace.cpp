#include "verbs/service_simulation/accelerator_pace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "planner/serving/serving_plan.hpp"
#include "verbs/option_text.hpp"
#include "verbs/plan/plan_request.hpp"

namespace orrery {
namespace {

ServingRun run_of(const AcceleratorQuestion& question, const Accelerator& accelerator,
                  const Model& model) {
  ServingRun run;
  run.id = question.accelerator;
  run.model = model;
  run.accelerator = &accelerator;
  run.count = question.accelerators;
  run.plan.tp = question.accelerators;
  run.plan.pp = 1;
  run.engine_text = question.engine;
  run.input_tokens = std::max(question.prompt_tokens, 1.0);
  run.output_tokens = std::max(question.output_tokens, 1.0);
  run.scenario = ServingRun::kServer;
  return run;
}

/// Sets what a replica's time costs; what is not published stays zero, with a note.
Status set_running_costs(const PlannerFacts& facts, const Accelerator& accelerator,
                         const ServingWork& work, AcceleratorPace& pace) {
  const ServingChoice choice = serving_choice(facts.catalog, accelerator, std::nullopt);
  Result<Economics> economics = running_costs_of(facts, *choice.node, {});
  if (!economics) return forward_error(economics);
  const ServingQuote quote = quote_of(*economics, std::nullopt, work);
  if (quote.price) {
    pace.usd_h = quote.price->value() * 3600;
  } else {
    pace.notes.push_back("no price: " + economics->price.missing);
  }
  if (quote.power) pace.watts = quote.power->value();
  if (accelerator.idle_power) {
    pace.watts_idle = accelerator.idle_power->value() * devices_of(work.job.plan);
  }
  return {};
}

}  // namespace

Result<AcceleratorPace> pace_on_accelerator(const CommandOptions& options,
                                            const AcceleratorQuestion& question) {
  Result<QuestionFacts> known = question_facts(options, question.model, {});
  if (!known) return forward_error(known);
  const PlannerFacts facts{known->facts->catalog(), known->facts->calibration()};
  Result<const Accelerator*> accelerator = facts.catalog.require<Accelerator>(question.accelerator);
  if (!accelerator) return wrong("accelerators", accelerator.error().message);
  const ServingRun run = run_of(question, **accelerator, *known->model);
  Result<ServingEstimate> estimate = estimate_serving(run, facts.calibration);
  if (!estimate) return forward_error(estimate);
  const ServingJob& job = estimate->job;
  const ServingConstants constants = constants_of(job, run, facts.calibration);
  Result<EnginePace> engine = engine_pace(job, constants);
  if (!engine) {
    return infeasible(fmt::format("{} on {} of type {}: {}", question.model, question.accelerators,
                                  (*accelerator)->id, engine.error().message));
  }
  AcceleratorPace pace{
      .name = (*accelerator)->id, .engine = *std::move(engine), .notes = estimate->warnings};
  const Status priced = set_running_costs(
      facts, **accelerator,
      {.job = job, .constants = constants, .prediction = estimate->prediction, .instances = 1},
      pace);
  if (!priced) return tl::unexpected<Error>(priced.error());
  return pace;
}

}  // namespace orrery
