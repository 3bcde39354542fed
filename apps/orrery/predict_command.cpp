// orrery predict
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "apps/orrery/command.hpp"
#include "apps/orrery/local_plan.hpp"
#include "apps/orrery/plan_json.hpp"
#include "base/text_table.hpp"

namespace orrery {
namespace {

struct PredictOptions {
  LocalPlanFiles files;
  std::size_t top = 10;
  LocalExchange exchange = LocalExchange::kSharedMemory;
};

Json step_json(const LocalPlan& plan, const LocalStep& step) {
  return {{"ranks", step.layout.ranks},
          {"shards", plan.spec.batch.shards},
          {"shards_of_a_rank", step.layout.most_shards},
          {"micro", step.layout.micro},
          {"step_s", step.seconds},
          {"tokens_per_s", static_cast<double>(plan.spec.tokens_per_step()) / step.seconds},
          {"breakdown", breakdown_json(step.terms)}};
}

std::string steps_text(const LocalPlan& plan, const std::vector<LocalStep>& steps) {
  TextTable table({{"ranks", Align::kRight},
                   {"shards a rank", Align::kRight},
                   {"micro-batch", Align::kRight},
                   {"step", Align::kRight},
                   {"tokens/s", Align::kRight},
                   {"products", Align::kRight},
                   {"exchange", Align::kRight},
                   {""}});
  for (const LocalStep& step : steps) {
    const double whole = step.terms.total();
    const auto part = [&](Term term) {
      return fmt::format("{:.0f} %", 100 * step.terms[term] / whole);
    };
    table.add(
        {fmt::format("{}", step.layout.ranks), fmt::format("{}", step.layout.most_shards),
         fmt::format("{}", step.layout.micro), fmt::format("{:.1f} ms", 1000 * step.seconds),
         fmt::format("{:.0f}", static_cast<double>(plan.spec.tokens_per_step()) / step.seconds),
         part(Term::kMatmul), part(Term::kDataParallel),
         step.layout.micro == plan.spec.batch.micro ? "as the spec says" : ""});
  }
  return fmt::format("{}: {} sequences of {} tokens in {} shards\n", plan.spec.name,
                     plan.spec.batch.sequences, plan.spec.model.sequence, plan.spec.batch.shards) +
         table.text();
}

Status predict(const CommandOptions& options, const PredictOptions& wanted) {
  Result<LocalPlan> plan = read_local_plan(options, wanted.files, wanted.exchange);
  if (!plan) return forward_error(plan);
  if (!plan->doubt.empty()) print_message(fmt::format("orrery: {}\n", plan->doubt));
  Result<std::vector<LocalStep>> steps = rank_local_steps(*plan);
  if (!steps) return forward_error(steps);
  if (options.output == OutputFormat::kJson) {
    Json json = Json::array();
    for (const LocalStep& step : *steps) json.push_back(step_json(*plan, step));
    print_json(json);
    return {};
  }
  if (steps->size() > wanted.top) steps->resize(wanted.top);
  print_text(steps_text(*plan, *steps));
  return {};
}

}  // namespace

void add_predict_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto wanted = std::make_shared<PredictOptions>();
  CLI::App& verb = *app.add_subcommand("predict", "the step time of a training on this machine");
  verb.add_option("TRAINING", wanted->files.training, "a spec of orrery-train")->required();
  verb.add_option("--calibration", wanted->files.calibration, "from orrery calibrate-node")
      ->type_name("FILE")
      ->required();
  verb.add_option("--top", wanted->top, "layouts to list")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  verb.add_flag_callback(
      "--sockets", [wanted] { wanted->exchange = LocalExchange::kSockets; },
      "ranks share no memory");
  verb.footer(
      "Layouts by ranks and micro-batch, fastest first.\n\nExamples:\n"
      "  orrery predict examples/training/gpt-small.yaml --calibration node.yaml");
  verb.callback([&options, &chosen, wanted] {
    chosen = [&options, wanted] { return predict(options, *wanted); };
  });
}

}  // namespace orrery
