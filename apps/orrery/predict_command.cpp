// orrery predict
#include <memory>

#include "apps/orrery/command.hpp"
#include "apps/orrery/output.hpp"
#include "verbs/training/prediction_answer.hpp"

namespace orrery {

void add_predict_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto wanted = std::make_shared<PredictCall>();
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
    chosen = [&options, wanted] {
      return print_answer(options, report_prediction(options, *wanted));
    };
  });
}

}  // namespace orrery
