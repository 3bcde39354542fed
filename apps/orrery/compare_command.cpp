// orrery compare
#include <memory>

#include "apps/orrery/command.hpp"
#include "apps/orrery/output.hpp"
#include "apps/orrery/plan_options.hpp"
#include "verbs/compare/compare_answer.hpp"

namespace orrery {

void add_compare_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto call = std::make_shared<CompareCall>();
  CLI::App* verb = app.add_subcommand(
      "compare",
      "compare accelerator types or fleets for one workload, or predictions with measurements");
  add_plan_options(*verb, call->options);
  verb->get_option("--model")->required(false);
  verb->remove_option(verb->get_option("--fleet"));
  verb->add_option("--fleet", call->fleets, "fleet spec; may be repeated")->type_name("FILE");
  verb->add_option(
      "--benchmark", call->benchmark.name,
      "compare measured rows with predictions: mlperf:gpt3, mlperf:lora, mlperf:inference");
  verb->add_option("--runs", call->benchmark.runs,
                   "file of the measured rows (default: data/runs/training_runs.json; of inference "
                   "serving_runs.json)")
      ->type_name("FILE");
  verb->callback([&options, &chosen, call] {
    chosen = [&options, call] { return print_answer(options, report_comparison(options, *call)); };
  });
}

}  // namespace orrery
