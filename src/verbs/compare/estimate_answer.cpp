#include "verbs/compare/estimate_answer.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/text/quantity_text.hpp"
#include "base/text/text_table.hpp"
#include "planner/launch/layout_text.hpp"
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

/// Rows of both kinds, as one JSON array and as a table for each kind.
class EstimateTables {
 public:
  void add(const TrainingRun& run, const Result<TrainingEstimate>& estimate) {
    if (!estimate) return add_error(run.id, estimate.error());
    if (!std::isfinite(estimate->cost.seconds)) return add_no_prediction(run);
    array_.push_back(estimate_json(run, *estimate));
    const ParallelPlan& plan = estimate->plan;
    trainings_.add({run.id, run.model.name, run.accelerator->id, fmt::format("{}", run.count),
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
    if (!is_finite(predicted)) return add_no_prediction(run);
    array_.push_back(serving_estimate_json(run.id, *estimate));
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

  template <class Run>
  void add_no_prediction(const Run& run) {
    add_error(run.id, {.message = fmt::format("the catalog's rates of {} give no prediction",
                                              run.accelerator->id),
                       .where = run.where});
  }

  void add_error(const std::string& id, const Error& error) {
    ++errors_;
    array_.push_back(error_json(id, error));
    refusals_ += fmt::format("{}: {}\n", id, error.text());
  }

  [[nodiscard]] EstimateReport report() const {
    std::string text;
    if (!trainings_.empty() || services_.empty()) text += trainings_.text();
    if (!trainings_.empty() && !services_.empty()) text += "\n";
    if (!services_.empty()) text += services_.text();
    return {.answer = {std::move(text), array_},
            .refusals = refusals_,
            .closing = errors_ == 0
                           ? ""
                           : fmt::format("rows without a prediction: {}; see the reasons above\n",
                                         errors_)};
  }

 private:
  Json array_ = Json::array();
  std::string refusals_;
  TextTable trainings_{{{"run"},
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

}  // namespace

EstimateReport estimate_rows(const PlannerFacts& facts, const std::vector<Run>& runs) {
  EstimateTables tables;
  for (const Run& run : runs) {
    if (const auto* bad = std::get_if<BadRow>(&run)) {
      tables.add_error(bad->id, bad->error);
    } else if (const auto* training = std::get_if<TrainingRun>(&run)) {
      tables.add(*training, estimate(*training, facts.catalog, facts.calibration));
    } else if (const auto* serving = std::get_if<ServingRun>(&run)) {
      tables.add(*serving, estimate_serving(*serving, facts.calibration));
    }
  }
  return tables.report();
}

Result<EstimateReport> report_estimates(const CommandOptions& options, const std::string& path) {
  const Result<Facts> facts = load_facts(options);
  if (!facts) return tl::unexpected(facts.error());
  const Result<RunFile> file = RunFile::load(path, facts->catalog(), facts->models());
  if (!file) return tl::unexpected(file.error());
  return estimate_rows({facts->catalog(), facts->calibration()}, file->runs);
}

}  // namespace orrery
