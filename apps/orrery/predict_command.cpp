// orrery predict
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "apps/orrery/command.hpp"
#include "apps/orrery/output.hpp"
#include "base/format/field_writer.hpp"
#include "planner/launch/layout_text.hpp"
#include "verbs/local/local_plan.hpp"
#include "verbs/plan/plan_json.hpp"

namespace orrery {
namespace {

struct PredictOptions {
  LocalPlanFiles files;
  std::size_t top = 10;
  RankRange ranks;
};

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

Status predict(const CommandOptions& options, const PredictOptions& wanted) {
  Result<LocalPlan> plan = read_local_plan(options, wanted.files);
  if (!plan) return forward_error(plan);
  if (!plan->doubt.empty()) print_message(fmt::format("orrery: {}\n", plan->doubt));
  Result<std::vector<PlannedStep>> steps = plan_local_steps(*plan, wanted.ranks);
  if (!steps) return forward_error(steps);
  if (options.output == OutputFormat::kJson) {
    Json json = Json::array();
    for (const PlannedStep& step : *steps) json.push_back(step_json(*plan, step));
    print_json(json);
    return {};
  }
  if (steps->size() > wanted.top) steps->resize(wanted.top);
  print_text(local_plan_text(*plan, *steps));
  return {};
}

}  // namespace

void add_predict_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto wanted = std::make_shared<PredictOptions>();
  CLI::App& verb =
      *app.add_subcommand("predict", "predict the step time of a training run on this machine");
  verb.add_option("TRAINING", wanted->files.training, "training spec of orrery-train")->required();
  verb.add_option("--calibration", wanted->files.calibration,
                  "calibration written by `orrery calibrate-node`")
      ->type_name("FILE")
      ->required();
  verb.add_option_function<std::uint32_t>(
          "--ranks", [wanted](std::uint32_t ranks) { wanted->ranks = {ranks, ranks}; },
          "number of ranks (default: every number that was measured)")
      ->type_name("N")
      ->check(CLI::Range(1u, 1u << 16));
  verb.add_option("--top", wanted->top, "number of layouts to list")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  verb.add_flag_callback(
      "--sockets", [wanted] { wanted->files.exchange = LocalExchange::kSockets; },
      "exchange data over sockets instead of shared memory");
  verb.footer(
      "The output lists every layout that orrery-train can run within the spec, fastest first.\n\n"
      "Examples:\n"
      "  orrery predict examples/training/gpt-small.yaml --calibration node.yaml");
  verb.callback([&options, &chosen, wanted] {
    chosen = [&options, wanted] { return predict(options, *wanted); };
  });
}

}  // namespace orrery
