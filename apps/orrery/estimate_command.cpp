// orrery estimate
#include <memory>

#include "apps/orrery/command.hpp"
#include "apps/orrery/output.hpp"
#include "verbs/compare/estimate_answer.hpp"

namespace orrery {
namespace {

Status run_estimate(const CommandOptions& options, const std::string& path) {
  const Result<EstimateReport> report = report_estimates(options, path);
  if (!report) return tl::unexpected(report.error());
  const bool text = options.output == OutputFormat::kText;
  if (text) print_message(report->refusals);
  print_answer(options, report->answer);
  if (text) print_message(report->closing);
  return {};
}

}  // namespace

void add_estimate_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  CLI::App* command = app.add_subcommand(
      "estimate", "predict each training or serving run in a file of measured or planned runs");
  auto path = std::make_shared<std::string>();
  command->add_option("--runs", *path, "run file (YAML or JSON); - reads standard input")
      ->type_name("FILE")
      ->required();
  command->callback([&options, &chosen, path] {
    chosen = [&options, path] { return run_estimate(options, *path); };
  });
}

}  // namespace orrery
