#include "verbs/compare/benchmark_answer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/text/text_table.hpp"
#include "planner/launch/layout_text.hpp"
#include "planner/run_estimate.hpp"
#include "verbs/compare/inference_benchmark.hpp"
#include "verbs/compare/run_rows.hpp"
#include "verbs/plan/plan_text.hpp"

namespace orrery {
namespace {

struct BenchmarkRow {
  std::string id;
  std::string accelerator;
  std::uint64_t accelerators = 0;
  std::optional<double> measured;  ///< seconds a step
  std::optional<TrainingEstimate> estimate;
  std::string error;

  [[nodiscard]] std::optional<double> deviation() const {
    if (!measured || !estimate) return std::nullopt;
    return estimate->cost.seconds / *measured - 1;
  }
};

/// Returns the group of a row of a run file: "mlperf:gpt3" names "mlperf_gpt3".
std::string group_of(const std::string& benchmark) {
  std::string group = benchmark;
  std::replace(group.begin(), group.end(), ':', '_');
  return group;
}

/// As measured, or what the measured rate of samples makes of a known batch.
std::optional<double> measured_seconds(const Json& row) {
  const auto result = row.find("result");
  if (result == row.end() || !result->is_object()) return std::nullopt;
  if (const auto step = number_in(*result, "step_s")) return step;
  const auto samples = number_in(*result, "samples_s");
  const auto batch = number_in(row, "gbs");
  if (!samples || !batch || *samples <= 0) return std::nullopt;
  return *batch / *samples;
}

std::string benchmarks_in(const Json& rows) {
  std::vector<std::string> names;
  for (const Json& row : rows) {
    const std::string group = group_in(row);
    if (is_inference_benchmark(group)) {
      names.emplace_back(kInferenceBenchmark);
    } else if (group.starts_with("mlperf_")) {
      names.push_back("mlperf:" + group.substr(7));
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return fmt::format("{}", fmt::join(names, ", "));
}

class BenchmarkReader {
 public:
  BenchmarkReader(const Catalog& catalog, const ModelCatalog& models,
                  const Calibration& calibration)
      : catalog_(catalog), models_(models), calibration_(calibration) {}

  Result<std::vector<BenchmarkRow>> read(const BenchmarkQuestion& question) {
    Result<Json> rows = run_rows(question.runs);
    if (!rows) return forward_error(rows);
    Result<RunFile> file = RunFile::load(question.runs, catalog_, models_);
    if (!file) return forward_error(file);
    std::vector<BenchmarkRow> found;
    const std::string group = group_of(question.name);
    for (std::size_t i = 0; i < std::min(rows->size(), file->runs.size()); ++i) {
      const Json& row = (*rows)[i];
      if (group_in(row) != group) continue;
      found.push_back(row_of(row, file->runs[i]));
    }
    if (!found.empty()) return found;
    return input_error({.file = question.runs}, fmt::format("no rows of \"{}\"; available: {}",
                                                            question.name, benchmarks_in(*rows)));
  }

 private:
  [[nodiscard]] BenchmarkRow row_of(const Json& row, const Run& run) const {
    BenchmarkRow result{.measured = measured_seconds(row)};
    if (const auto* bad = std::get_if<BadRow>(&run)) {
      result.id = bad->id;
      result.error = bad->error.message;
      return result;
    }
    const auto* training = std::get_if<TrainingRun>(&run);
    if (training == nullptr) {
      result.error = "a serving run";
      return result;
    }
    result.id = training->id;
    result.accelerator = training->accelerator->id;
    result.accelerators = training->count;
    Result<TrainingEstimate> predicted = estimate(*training, catalog_, calibration_);
    if (predicted) {
      result.estimate = *std::move(predicted);
    } else {
      result.error = predicted.error().message;
    }
    return result;
  }

  const Catalog& catalog_;
  const ModelCatalog& models_;
  const Calibration& calibration_;
};

/// Means over the rows with both figures.
struct Summary {
  std::size_t rows = 0;
  double error = 0;  ///< mean absolute deviation
  double bias = 0;
  double inside = 0;  ///< part of the measurements within the interval
};

Summary summary_of(const std::vector<BenchmarkRow>& rows) {
  Summary summary;
  for (const BenchmarkRow& row : rows) {
    const std::optional<double> deviation = row.deviation();
    if (!deviation) continue;
    ++summary.rows;
    summary.error += std::abs(*deviation);
    summary.bias += *deviation;
    const TrainingEstimate& estimate = *row.estimate;
    const bool inside =
        estimate.seconds_low <= *row.measured && *row.measured <= estimate.seconds_high;
    summary.inside += inside ? 1 : 0;
  }
  const double count = std::max<double>(1, static_cast<double>(summary.rows));
  summary.error /= count;
  summary.bias /= count;
  summary.inside /= count;
  return summary;
}

std::string rows_text(const std::vector<BenchmarkRow>& rows) {
  TextTable table({{"run"},
                   {"accelerator"},
                   {"n", Align::kRight},
                   {"layout"},
                   {"measured", Align::kRight},
                   {"predicted", Align::kRight},
                   {"80 % interval", Align::kRight},
                   {"error", Align::kRight}});
  for (const BenchmarkRow& row : rows) {
    std::vector<std::string> cells = {row.id, row.accelerator, std::to_string(row.accelerators),
                                      row.error, row.measured ? duration_text(*row.measured) : "?"};
    if (row.estimate) {
      const TrainingEstimate& e = *row.estimate;
      cells[3] = print_layout(e.plan);
      cells.push_back(duration_text(e.cost.seconds));
      cells.push_back(duration_text(e.seconds_low) + " to " + duration_text(e.seconds_high));
      cells.push_back(row.deviation() ? fmt::format("{:+.1f} %", *row.deviation() * 100) : "");
    }
    table.add(std::move(cells));
  }
  const Summary summary = summary_of(rows);
  return fmt::format(
      "{}\n{} rows with measurement and prediction: mean absolute error {:.1f} %, bias {:+.1f} %, "
      "{:.0f} % within the interval.\n",
      table.text(), summary.rows, summary.error * 100, summary.bias * 100, summary.inside * 100);
}

Json rows_json(const std::vector<BenchmarkRow>& rows) {
  Json list = Json::array();
  for (const BenchmarkRow& row : rows) {
    Json json = {{"id", row.id},
                 {"accelerator", row.accelerator},
                 {"accelerators", row.accelerators},
                 {"measured_step_s", row.measured ? Json(*row.measured) : Json(nullptr)}};
    if (row.estimate) {
      json["layout"] = print_layout(row.estimate->plan);
      json["step_s"] = row.estimate->cost.seconds;
      json["step_s_low"] = row.estimate->seconds_low;
      json["step_s_high"] = row.estimate->seconds_high;
    } else {
      json["error"] = row.error;
    }
    list.push_back(std::move(json));
  }
  const Summary summary = summary_of(rows);
  return {{"rows", list},
          {"compared", summary.rows},
          {"mape", summary.error},
          {"bias", summary.bias},
          {"inside_interval", summary.inside}};
}

}  // namespace

Result<VerbAnswer> report_benchmark(const Facts& facts, const BenchmarkQuestion& asked) {
  BenchmarkQuestion question = asked;
  const bool inference = question.name == kInferenceBenchmark;
  if (question.runs.empty()) {
    question.runs = inference ? "data/runs/serving_runs.json" : "data/runs/training_runs.json";
  }
  if (inference) return report_inference_benchmark(facts, question.runs);
  const Result<std::vector<BenchmarkRow>> rows =
      BenchmarkReader(facts.catalog(), facts.models(), facts.calibration()).read(question);
  if (!rows) return tl::unexpected(rows.error());
  return VerbAnswer{rows_text(*rows), rows_json(*rows)};
}

}  // namespace orrery
