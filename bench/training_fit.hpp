// bench/training_fit.hpp - the rows of a training run file as questions with measured answers, and
// the fit of the calibration to them.
#pragma once

#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/fit.hpp"
#include "bench/measured_runs.hpp"
#include "bench/single_node_csv.hpp"
#include "perf/runs/run_file.hpp"
#include "perf/training/training_estimate.hpp"
#include "perf/training/training_step.hpp"

namespace orrery {

struct TrainingCase {
  const TrainingRun* run = nullptr;
  const MeasuredRow* measured = nullptr;
  RunQuestion question;
  double seconds = 0;  ///< measured, an optimizer step
};

/// Owns what the cases point to.
struct TrainingCases {
  std::unique_ptr<RunFile> file;
  std::vector<MeasuredRow> rows;
  std::vector<TrainingCase> cases;
  std::vector<std::string> notes;  ///< rows without a case, and why
};

/// Seconds a step, stated or from a stated rate; none where neither is.
inline std::optional<double> measured_seconds(const MeasuredRow& row, const RunQuestion& question) {
  const TrainingJob& job = question.job;
  if (row.step_seconds && (question.batch_known || !row.tokens_s)) return row.step_seconds;
  const double tokens = job.global_batch * job.sequence.value();
  const double accelerators =
      static_cast<double>(question.machine.ranks) / question.machine.ranks_per_accelerator;
  if (row.tokens_s) return tokens / (*row.tokens_s * accelerators);
  if (row.samples_s) return job.global_batch / *row.samples_s;
  const bool counted = row.tflops_kind.find("full") != std::string::npos ||
                       row.tflops_kind.find("non-causal") != std::string::npos;
  const MaskedScores masked = counted ? MaskedScores::kCounted : MaskedScores::kSkipped;
  const double flops = 3 * forward_flops(*job.model, job.sequence, masked).value() * tokens;
  if (row.tflops) return flops / (*row.tflops * 1e12 * accelerators);
  return std::nullopt;
}

/// Rows with a stated layout (or one the software's mesh implies) and a measured step.
/// A path that ends in ".csv" is read as bench/single_node_csv.hpp says.
inline Result<TrainingCases> load_training_cases(const std::string& path, const Catalog& catalog,
                                                 const ModelCatalog& models,
                                                 const Calibration& calibration) {
  std::ifstream stream(path);
  if (!stream) return environment_error(path + ": cannot be read");
  const std::string text = path.ends_with(".csv")
                               ? run_file_of_csv(stream)
                               : std::string(std::istreambuf_iterator<char>(stream), {});
  Result<RunFile> file = RunFile::parse(text, path, {catalog, models});
  if (!file) return forward_error(file);
  TrainingCases result;
  result.file = std::make_unique<RunFile>(*std::move(file));
  result.rows = measured_rows_of(text);
  for (std::size_t i = 0; i < result.rows.size(); ++i) {
    const MeasuredRow& row = result.rows[i];
    const auto* run = std::get_if<TrainingRun>(&result.file->runs[i]);
    if (run == nullptr) {
      if (const auto* bad = std::get_if<BadRow>(&result.file->runs[i])) {
        result.notes.push_back(bad->error.text());
      }
      continue;
    }
    Result<RunQuestion> question = question_of(*run, catalog);
    if (!question) {
      result.notes.push_back(run->id + ": " + question.error().text());
      continue;
    }
    const std::optional<double> seconds = measured_seconds(row, *question);
    if (question->layout_open || !seconds || row.out_of_memory) continue;
    const Result<TrainingModel> model =
        TrainingModel::make(question->job, question->machine, calibration);
    if (!model) {
      result.notes.push_back(run->id + ": " + model.error().text());
      continue;
    }
    close_recompute(*question, *model);
    result.cases.push_back({run, &row, *question, *seconds});
  }
  return result;
}

inline Breakdown predict_terms(const TrainingCase& one, const Calibration& calibration) {
  const Result<TrainingModel> model =
      TrainingModel::make(one.question.job, one.question.machine, calibration);
  return model->step_terms(one.question.plan, model->block_costs(one.question.plan));
}

inline TrainingMemory predict_memory(const TrainingCase& one, const Calibration& calibration) {
  const Result<TrainingModel> model =
      TrainingModel::make(one.question.job, one.question.machine, calibration);
  return model->memory(one.question.plan);
}

/// Every fitted constant at its prior.
inline void reset_to_priors(Calibration& calibration) {
  for (std::size_t i = 0; i < calibration.constants().size(); ++i) {
    calibration.set_value(i, calibration.constants()[i].prior);
  }
}

/// Errors of rows of one source correlate, so such rows carry less information than as many sources
/// of one: a row weighs with the fourth root of the number of rows of its source. The mean is 1.
inline std::vector<double> source_weights(const std::vector<const TrainingCase*>& cases) {
  std::map<std::string, double> rows;
  for (const TrainingCase* one : cases) ++rows[one->measured->source];
  std::vector<double> weights;
  double sum = 0;
  for (const TrainingCase* one : cases) {
    weights.push_back(std::pow(rows[one->measured->source], -0.25));
    sum += weights.back();
  }
  for (double& weight : weights) weight *= static_cast<double>(cases.size()) / sum;
  return weights;
}

/// Residuals of cases. A change of one constant computes only those it can move again: the ones
/// that a step of its spread, or going to one of its bounds, moved at the start.
class TrainingResiduals {
 public:
  TrainingResiduals(std::vector<const TrainingCase*> cases, Calibration start)
      : cases_(std::move(cases)), kept_calibration_(std::move(start)) {
    kept_ = all(kept_calibration_);
    for (std::size_t i = 0; i < kept_calibration_.constants().size(); ++i) {
      reach_.push_back(reach_of(i));
    }
  }

  std::vector<double> operator()(const Calibration& tried) {
    std::vector<std::size_t> changed;
    for (std::size_t i = 0; i < reach_.size(); ++i) {
      const double kept = kept_calibration_.constants()[i].value;
      if (tried.constants()[i].value != kept) changed.push_back(i);
    }
    if (changed.size() > 1) {
      kept_ = all(tried);
      kept_calibration_ = tried;
      return kept_;
    }
    std::vector<double> now = kept_;
    for (const std::size_t constant : changed) {
      for (const std::size_t row : reach_[constant]) now[row] = residual(tried, row);
    }
    return now;
  }

 private:
  [[nodiscard]] double residual(const Calibration& tried, std::size_t row) const {
    return std::log(predict_terms(*cases_[row], tried).total() / cases_[row]->seconds);
  }

  [[nodiscard]] std::vector<double> all(const Calibration& tried) const {
    std::vector<double> residuals(cases_.size());
    for (std::size_t r = 0; r < cases_.size(); ++r) residuals[r] = residual(tried, r);
    return residuals;
  }

  std::vector<std::size_t> reach_of(std::size_t constant) {
    const CalibrationConstant c = kept_calibration_.constants()[constant];
    std::vector<bool> moves(cases_.size());
    if (c.spread > 0) {
      for (const double value : {c.value + 0.02 * c.spread, c.low, c.high}) {
        kept_calibration_.set_value(constant, value);
        for (std::size_t r = 0; r < cases_.size(); ++r) {
          if (!moves[r]) moves[r] = std::abs(residual(kept_calibration_, r) - kept_[r]) > 1e-5;
        }
      }
      kept_calibration_.set_value(constant, c.value);
    }
    std::vector<std::size_t> rows;
    for (std::size_t r = 0; r < cases_.size(); ++r) {
      if (moves[r]) rows.push_back(r);
    }
    return rows;
  }

  std::vector<const TrainingCase*> cases_;
  Calibration kept_calibration_;
  std::vector<double> kept_;
  std::vector<std::vector<std::size_t>> reach_;
};

/// Fits to the cases `used` accepts. Returns how many rows each constant moves.
template <class Used>
std::vector<std::int64_t> fit_training(Calibration& calibration, const TrainingCases& cases,
                                       const Used& used) {
  std::vector<const TrainingCase*> chosen;
  for (const TrainingCase& one : cases.cases) {
    if (used(one)) chosen.push_back(&one);
  }
  const Residuals residuals = TrainingResiduals(chosen, calibration);
  Fit fit(calibration, residuals,
          {.iterations = 80, .tolerance = 1e-5, .weights = source_weights(chosen)});
  fit.run();
  return fit.rows_moved();
}

}  // namespace orrery
