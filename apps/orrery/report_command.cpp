// orrery report
#include <memory>

#include "apps/orrery/command.hpp"
#include "apps/orrery/output.hpp"
#include "verbs/training/training_answer.hpp"

namespace orrery {

void add_report_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto wanted = std::make_shared<TrainingReportCall>();
  CLI::App& verb = *app.add_subcommand("report", "write an HTML report of a run of orrery-train");
  verb.add_option("RUN", wanted->run, "output directory of the run, with loss.csv and events.jsonl")
      ->required();
  verb.add_option("--unbroken", wanted->unbroken,
                  "directory of an uninterrupted run that must end in the same state");
  verb.add_option("--job", wanted->job,
                  "output of `orrery job ID -o json` for the run, to add its cost");
  verb.add_option("--kill", wanted->kill,
                  "description of the kill: JSON with pids, node, step, at");
  verb.add_option("--training", wanted->prediction.training,
                  "training spec of the run, to predict its step time");
  verb.add_option("--calibration", wanted->prediction.calibration,
                  "calibration of the machine, from `orrery calibrate-node`");
  verb.add_option("--out", wanted->out, "HTML file to write");
  verb.footer(
      "The exit status is 1 if the two runs end in different states, or if one did not "
      "end.\n\nExamples:\n"
      "  orrery report build/training --out training.html\n"
      "  orrery report run --unbroken whole -o json");
  verb.callback([&options, &chosen, wanted] {
    chosen = [&options, wanted] {
      return print_answer(options, report_training(options, *wanted));
    };
  });
}

}  // namespace orrery
