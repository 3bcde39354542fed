#include "verbs/training/prediction_answer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "planner/launch/layout_text.hpp"
#include "verbs/plan/plan_json.hpp"

namespace orrery {
namespace {

Json step_json(const LocalPlan& plan, const PlannedStep& planned) {
  const LocalStep& step = planned.step;
  Json json = layout_json(parallel_plan(step.layout));
  json["ranks"] = step.layout.ranks;
  json["shards"] = plan.spec.batch.shards;
  json["shards_of_a_replica"] = step.layout.most_shards;
  json["step_s"] = step.seconds;
  json["tokens_per_s"] = static_cast<double>(plan.spec.tokens_per_step()) / step.seconds;
  json["memory_bytes"] = planned.memory.total().value();
  json["breakdown"] = breakdown_json(step.terms);
  return json;
}

}  // namespace

VerbAnswer prediction_answer(const LocalPlan& plan, const std::vector<PlannedStep>& steps,
                             std::size_t top) {
  Json json = Json::array();
  for (const PlannedStep& step : steps) json.push_back(step_json(plan, step));
  const auto shown = static_cast<std::ptrdiff_t>(std::min(top, steps.size()));
  const std::vector<PlannedStep> first(steps.begin(), steps.begin() + shown);
  return {local_plan_text(plan, first), std::move(json)};
}

Result<VerbAnswer> report_prediction(const CommandOptions& options, const PredictCall& call) {
  const Result<LocalPlan> plan = read_local_plan(options, call.files);
  if (!plan) return tl::unexpected(plan.error());
  if (!plan->doubt.empty() && options.message) {
    options.message(fmt::format("orrery: {}\n", plan->doubt));
  }
  const Result<std::vector<PlannedStep>> steps = plan_local_steps(*plan, call.ranks);
  if (!steps) return tl::unexpected(steps.error());
  return prediction_answer(*plan, *steps, call.top);
}

}  // namespace orrery
