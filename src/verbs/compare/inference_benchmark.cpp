#include "verbs/compare/inference_benchmark.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "base/text/text_table.hpp"
#include "perf/runs/run_file.hpp"
#include "perf/serving/serving_estimate.hpp"
#include "planner/serving/serving_capacity.hpp"
#include "planner/serving/serving_space.hpp"
#include "verbs/compare/run_rows.hpp"

namespace orrery {
namespace {

constexpr std::size_t kFigures = 3;
constexpr std::array<const char*, kFigures> kKeys{"output_tokens_s", "ttft_s", "tpot_s"};

/// One figure of a row.
struct ComparedFigure {
  std::optional<double> measured;
  std::optional<double> predicted;
  ServingInterval around;

  [[nodiscard]] std::optional<double> deviation() const {
    if (!measured || !predicted || *measured <= 0) return std::nullopt;
    return *predicted / *measured - 1;
  }
  [[nodiscard]] bool inside() const {
    return *predicted * around.low <= *measured && *measured <= *predicted * around.high;
  }
};

struct InferenceRow {
  std::string id;
  std::string scenario;
  std::string model;
  std::string accelerator;
  std::uint64_t accelerators = 0;
  std::string layout;
  std::array<ComparedFigure, kFigures> figures;
  std::string error;
};

/// Predicts the latencies of a row with arrivals at its own rate of requests, which was offered.
void predict_latencies(ServingRun run, double requests_s, const Calibration& calibration,
                       InferenceRow& row) {
  run.request_rate = requests_s;
  const Result<ServingEstimate> estimate = estimate_serving(run, calibration);
  if (!estimate || !is_finite(estimate->prediction)) return;
  row.figures[1].predicted = estimate->prediction.ttft.value();
  row.figures[1].around = estimate->first_token;
  row.figures[2].predicted = estimate->prediction.tpot.value();
  row.figures[2].around = estimate->latency;
}

void predict(const ServingRun& run, const Calibration& calibration, InferenceRow& row) {
  row.id = run.id;
  row.model = run.model.name;
  row.accelerator = run.accelerator->id;
  row.accelerators = run.count;
  const Result<ServingEstimate> estimate = estimate_serving(run, calibration);
  if (!estimate) {
    row.error = estimate.error().message;
    return;
  }
  const ServingPrediction& predicted = estimate->prediction;
  if (!is_finite(predicted)) {
    row.error = "the catalog's rates give no prediction";
    return;
  }
  const ServingPlan& plan = estimate->job.plan;
  row.layout = fmt::format("{} x {}", plan.replicas, print_layout(plan));
  row.figures[0].predicted = predicted.output_tokens.value();
  row.figures[0].around = estimate->throughput;
}

Result<std::vector<InferenceRow>> inference_rows(const Facts& facts, const std::string& runs) {
  Result<Json> rows = run_rows(runs);
  if (!rows) return forward_error(rows);
  Result<RunFile> file = RunFile::load(runs, facts.catalog(), facts.models());
  if (!file) return forward_error(file);
  std::vector<InferenceRow> found;
  for (std::size_t i = 0; i < std::min(rows->size(), file->runs.size()); ++i) {
    const Json& json = (*rows)[i];
    if (!is_inference_benchmark(group_in(json))) continue;
    InferenceRow& row = found.emplace_back();
    row.id = text_in(json, "id");
    row.scenario = text_in(json, "scenario");
    for (std::size_t figure = 0; figure < kFigures; ++figure) {
      const auto result = json.find("result");
      if (result != json.end()) row.figures[figure].measured = number_in(*result, kKeys[figure]);
    }
    if (const auto* run = std::get_if<ServingRun>(&file->runs[i])) {
      predict(*run, facts.calibration(), row);
      const auto result = json.find("result");
      const auto rate = result == json.end() ? std::nullopt : number_in(*result, "requests_s");
      if (rate && row.error.empty()) predict_latencies(*run, *rate, facts.calibration(), row);
    } else if (const auto* bad = std::get_if<BadRow>(&file->runs[i])) {
      row.error = bad->error.message;
    } else {
      row.error = "a training run";
    }
  }
  if (!found.empty()) return found;
  return input_error({.file = runs}, fmt::format("no rows of \"{}\"", kInferenceBenchmark));
}

/// Deviations of one figure in one scenario.
struct Deviations {
  std::vector<double> sizes;
  double sum = 0;
  std::size_t inside = 0;

  void add(const ComparedFigure& figure) {
    const auto deviation = figure.deviation();
    if (!deviation) return;
    sizes.push_back(std::abs(*deviation));
    sum += *deviation;
    inside += figure.inside() ? 1 : 0;
  }
  [[nodiscard]] double median() const {
    std::vector<double> sorted = sizes;
    std::ranges::sort(sorted);
    return sorted[sorted.size() / 2];
  }
  [[nodiscard]] double part(double all) const { return all / static_cast<double>(sizes.size()); }
};

Deviations deviations_of(const std::vector<InferenceRow>& rows, std::string_view scenario,
                         std::size_t figure) {
  Deviations all;
  for (const InferenceRow& row : rows) {
    if (row.scenario == scenario) all.add(row.figures[figure]);
  }
  return all;
}

std::string number_text(const std::optional<double>& number) {
  return number ? fmt::format("{:.4g}", *number) : "";
}

std::string rows_text(const std::vector<InferenceRow>& rows) {
  TextTable table({{"run"},
                   {"scenario"},
                   {"model"},
                   {"accelerator"},
                   {"n", Align::kRight},
                   {"layout"},
                   {"tokens/s", Align::kRight},
                   {"predicted", Align::kRight},
                   {"error", Align::kRight},
                   {"TTFT, s", Align::kRight},
                   {"predicted", Align::kRight},
                   {"TPOT, s", Align::kRight},
                   {"predicted", Align::kRight}});
  for (const InferenceRow& row : rows) {
    const auto deviation = row.figures[0].deviation();
    table.add({row.id, row.scenario, row.model, row.accelerator, std::to_string(row.accelerators),
               row.error.empty() ? row.layout : row.error, number_text(row.figures[0].measured),
               number_text(row.figures[0].predicted),
               deviation ? fmt::format("{:+.1f} %", *deviation * 100) : "",
               number_text(row.figures[1].measured),
               row.figures[1].measured ? number_text(row.figures[1].predicted) : "",
               number_text(row.figures[2].measured),
               row.figures[2].measured ? number_text(row.figures[2].predicted) : ""});
  }
  return table.text();
}

Json row_json(const InferenceRow& row) {
  Json json = {{"id", row.id},
               {"scenario", row.scenario},
               {"model", row.model},
               {"accelerator", row.accelerator},
               {"accelerators", row.accelerators}};
  if (!row.error.empty()) json["error"] = row.error;
  if (!row.layout.empty()) json["layout"] = row.layout;
  for (std::size_t figure = 0; figure < kFigures; ++figure) {
    const ComparedFigure& compared = row.figures[figure];
    const std::string key = kKeys[figure];
    json["measured_" + key] = compared.measured ? Json(*compared.measured) : Json(nullptr);
    if (!compared.predicted) continue;
    json[key] = *compared.predicted;
    json[key + "_low"] = *compared.predicted * compared.around.low;
    json[key + "_high"] = *compared.predicted * compared.around.high;
  }
  return json;
}

}  // namespace

Result<VerbAnswer> report_inference_benchmark(const Facts& facts, const std::string& runs) {
  const Result<std::vector<InferenceRow>> rows = inference_rows(facts, runs);
  if (!rows) return tl::unexpected(rows.error());
  VerbAnswer answer{rows_text(*rows) + "\n", {{"rows", Json::array()}, {"summary", Json::array()}}};
  for (const InferenceRow& row : *rows) answer.json["rows"].push_back(row_json(row));
  constexpr std::array<const char*, kFigures> kNames{"output tokens/s", "time to the first token",
                                                     "time between tokens"};
  for (const char* scenario : {"offline", "server", "single"}) {
    for (std::size_t figure = 0; figure < kFigures; ++figure) {
      const Deviations all = deviations_of(*rows, scenario, figure);
      if (all.sizes.empty()) continue;
      const double median = all.median();
      const double bias = all.part(all.sum);
      const double inside = all.part(static_cast<double>(all.inside));
      answer.text += fmt::format(
          "{}, {} rows, {}: median absolute error {:.1f} %, bias {:+.1f} %, {:.0f} % within the "
          "interval\n",
          scenario, all.sizes.size(), kNames[figure], median * 100, bias * 100, inside * 100);
      answer.json["summary"].push_back({{"scenario", scenario},
                                        {"figure", kKeys[figure]},
                                        {"rows", all.sizes.size()},
                                        {"median_error", median},
                                        {"bias", bias},
                                        {"inside_interval", inside}});
    }
  }
  return answer;
}

}  // namespace orrery
