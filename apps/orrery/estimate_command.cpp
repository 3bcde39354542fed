#include <fmt/format.h>

#include <cmath>

#include "apps/orrery/command.hpp"
#include "apps/orrery/output.hpp"
#include "base/assert.hpp"
#include "base/format/field_writer.hpp"
#include "base/text/quantity_text.hpp"
#include "base/text/text_table.hpp"
#include "planner/run_estimate.hpp"
#include "planner/serving/serving_capacity.hpp"
#include "planner/serving/serving_space.hpp"
#include "verbs/plan/plan_json.hpp"
#include "verbs/serve/serving_json.hpp"

namespace orrery {
namespace {

Json error_json(const std::string& id, const Error& error) {
  Json json;
  json["id"] = id;
  json["error"] = error.text();
  return json;
}

Json estimate_json(const TrainingRun& run, const TrainingEstimate& estimate) {
  ORRERY_ASSERT(std::isfinite(estimate.cost.seconds), "the cost model returns finite seconds");
  Json json;
  json["id"] = run.id;
  json["step_s"] = estimate.cost.seconds;
  json["step_s_low"] = estimate.seconds_low;
  json["step_s_high"] = estimate.seconds_high;
  json["mfu"] = estimate.mfu;
  json["mfu_peak"] = "16-bit dense";
  json["tflops"] = estimate.flops / 1e12;
  json["memory_bytes"] = estimate.cost.memory.total();
  json["fits"] = estimate.fits;
  json["plan"] = layout_json(estimate.plan);
  json["breakdown"] = breakdown_json(estimate.cost.terms);
  json["warnings"] = estimate.warnings;
  return json;
}

/// Rows as they are printed: all in one JSON array, or a table for each kind.
class EstimatePrinter {
 public:
  explicit EstimatePrinter(const CommandOptions& options) : options_(options) {}

  void add(const TrainingRun& run, const Result<TrainingEstimate>& estimate) {
    if (!estimate) return add_error(run.id, estimate.error());
    if (json()) {
      array_.push_back(estimate_json(run, *estimate));
      return;
    }
    const ParallelPlan& plan = estimate->plan;
    table_.add({run.id, run.model.name, run.accelerator->id, fmt::format("{}", run.count),
                fmt::format("tp{} pp{} dp{}", plan.tp, plan.pp, plan.dp),
                fmt::format("{:.4g}", estimate->cost.seconds),
                fmt::format("{:.4g} to {:.4g}", estimate->seconds_low, estimate->seconds_high),
                fmt::format("{:.3f}", estimate->mfu),
                fmt::format("{:.1f}", estimate->cost.memory.total() / 1e9),
                estimate->fits ? "yes" : "no"});
  }

  void add(const ServingRun& run, const Result<ServingEstimate>& estimate) {
    if (!estimate) return add_error(run.id, estimate.error());
    const ServingPrediction& predicted = estimate->prediction;
    if (!is_finite(predicted)) {
      return add_error(run.id,
                       {.message = fmt::format("the catalog's rates of {} give no prediction",
                                               run.accelerator->id),
                        .where = run.where});
    }
    if (json()) {
      array_.push_back(serving_estimate_json(run.id, *estimate));
      return;
    }
    const ServingPlan& plan = estimate->job.plan;
    const double tokens = predicted.output_tokens.value();
    const ServingInterval& around = estimate->throughput;
    services_.add(
        {run.id, run.model.name, run.accelerator->id, fmt::format("{}", run.count),
         fmt::format("{} x {}", plan.replicas, print_layout(plan)), fmt::format("{:.4g}", tokens),
         fmt::format("{:.4g} to {:.4g}", tokens * around.low, tokens * around.high),
         fmt::format("{:.3g}", predicted.ttft.value()),
         fmt::format("{:.3g}", predicted.tpot.value()), fmt::format("{:.4g}", predicted.batch),
         fmt::format("{:.1f}", bytes_used(predicted, plan) / 1e9), predicted.fits ? "yes" : "no"});
  }

  void add_error(const std::string& id, const Error& error) {
    ++errors_;
    if (json()) {
      array_.push_back(error_json(id, error));
    } else {
      print_message(fmt::format("{}: {}\n", id, error.text()));
    }
  }

  void finish() {
    if (json()) {
      print_json(array_);
      return;
    }
    if (!table_.empty() || services_.empty()) print_text(table_.text());
    if (!table_.empty() && !services_.empty()) print_text("\n");
    if (!services_.empty()) print_text(services_.text());
    if (errors_ > 0) {
      print_message(fmt::format("rows without a prediction: {}; see the reasons above\n", errors_));
    }
  }

 private:
  [[nodiscard]] bool json() const { return options_.output == OutputFormat::kJson; }

  const CommandOptions& options_;
  Json array_ = Json::array();
  TextTable table_{{{"run"},
                    {"model"},
                    {"accelerator"},
                    {"n", Align::kRight},
                    {"layout"},
                    {"step (s)", Align::kRight},
                    {"80 % interval"},
                    {"MFU (16-bit)", Align::kRight},
                    {"GB", Align::kRight},
                    {"fits"}}};
  TextTable services_{{{"run"},
                       {"model"},
                       {"accelerator"},
                       {"n", Align::kRight},
                       {"layout"},
                       {"output tokens/s", Align::kRight},
                       {"80 % interval"},
                       {"TTFT (s)", Align::kRight},
                       {"TPOT (s)", Align::kRight},
                       {"batch", Align::kRight},
                       {"GB", Align::kRight},
                       {"fits"}}};
  std::size_t errors_ = 0;
};

Status run_estimate(const CommandOptions& options, const std::string& path) {
  const Result<Facts> facts = load_facts(options);
  if (!facts) return tl::unexpected(facts.error());
  Result<RunFile> file = RunFile::load(path, facts->catalog(), facts->models());
  if (!file) return forward_error(file);
  EstimatePrinter printer(options);
  for (const Run& run : file->runs) {
    if (const auto* bad = std::get_if<BadRow>(&run)) {
      printer.add_error(bad->id, bad->error);
    } else if (const auto* training = std::get_if<TrainingRun>(&run)) {
      printer.add(*training, estimate(*training, facts->catalog(), facts->calibration()));
    } else if (const auto* serving = std::get_if<ServingRun>(&run)) {
      printer.add(*serving, estimate_serving(*serving, facts->calibration()));
    }
  }
  printer.finish();
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
