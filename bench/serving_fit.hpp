// bench/serving_fit.hpp - published serving rows and measured kernels as questions with measured
// answers, and their residuals under a calibration.
//
// Only fitting and checking programs read what was measured. Residuals are kept and computed again
// only where a constant they depend on has changed, so that a Jacobian costs a few evaluations a
// row.
#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/measured_runs.hpp"
#include "perf/serving/serving_estimate.hpp"

namespace orrery {

/// One measured figure of a row or a kernel.
struct ServingAnswer {
  std::string metric;
  double value = 0;
  double weight = 1;
};

struct ServingCase {
  std::string id;
  std::string group;
  std::string accelerator;
  int fold = 0;
  bool served = false;
  const ServingRun* run = nullptr;  ///< none: a kernel
  ServingJob job;
  std::vector<ServingAnswer> answers;  ///< the row's own metric first
  std::function<double(const KernelTime&)> kernel;
  std::vector<std::size_t> positions;  ///< of the constants it depends on
};

inline double predicted(const ServingPrediction& prediction, const std::string& metric) {
  if (metric == "output_tokens_s") return prediction.output_tokens.value();
  if (metric == "tokens_s_total") return prediction.tokens_total.value();
  if (metric == "requests_s") return prediction.requests;
  if (metric == "e2e_s") return prediction.e2e.value();
  if (metric == "tpot_s") return prediction.tpot.value();
  return prediction.ttft.value();
}

/// log(predicted / measured) of each answer.
inline std::vector<double> answer_errors(const ServingCase& item, const Calibration& calibration) {
  std::vector<double> errors;
  if (item.run == nullptr) {
    const double group = item.job.plan.tp;
    const ServingConstants constants = serving_constants(
        calibration,
        {.accelerator = *item.job.accelerator, .engine = item.job.engine, .group = group});
    const KernelTime kernels(*item.job.accelerator, constants);
    return {std::log(item.kernel(kernels) / item.answers.front().value)};
  }
  const ServingPrediction prediction =
      predict_serving(item.job, constants_of(item.job, *item.run, calibration));
  for (const ServingAnswer& answer : item.answers) {
    const double value = std::max(1e-12, predicted(prediction, answer.metric));
    errors.push_back(std::log(value / answer.value));
  }
  return errors;
}

/// The row's own metric, then its time to first token where the service was not saturated.
inline std::vector<ServingAnswer> answers_of(const nlohmann::json& result, const ServingJob& job) {
  std::vector<ServingAnswer> answers;
  for (const char* metric :
       {"output_tokens_s", "tokens_s_total", "requests_s", "e2e_s", "ttft_s", "tpot_s"}) {
    if (const auto value = number_in(result, metric)) {
      answers.push_back({.metric = metric, .value = *value});
      break;
    }
  }
  const bool saturated = job.load.requests && !job.load.rate;
  if (answers.empty() || answers.front().metric == "ttft_s" || saturated) return answers;
  if (job.load.latency_bound) return answers;
  if (const auto first = number_in(result, "ttft_s")) {
    answers.push_back({.metric = "ttft_s", .value = *first, .weight = 0.35});
  }
  return answers;
}

/// Complete rows of the file, without those marked as beating a loss-free roofline.
/// `runs` must outlive the cases.
inline std::vector<ServingCase> serving_cases(const RunFile& runs,
                                              const std::vector<MeasuredRow>& measured,
                                              const Calibration& calibration) {
  std::vector<ServingCase> cases;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    const auto* run = std::get_if<ServingRun>(&runs.runs[i]);
    if (run == nullptr || !measured[i].complete || measured[i].row.contains("suspect")) continue;
    std::vector<std::string> warnings;
    Result<ServingJob> job = serving_job_of(*run, warnings);
    if (!job || !run->plan.tp || !run->weights) continue;
    ServingCase item{.id = run->id, .group = measured[i].source};
    item.accelerator = run->accelerator->id;
    item.fold = measured[i].fold;
    item.served = run->scenario == ServingRun::kServer;
    item.run = run;
    item.job = std::move(*job);
    item.answers = answers_of(measured[i].row.at("result"), item.job);
    if (item.answers.empty()) continue;
    item.positions = constants_of(item.job, *run, calibration).positions;
    cases.push_back(std::move(item));
  }
  return cases;
}

/// Residuals of the cases marked in `used`, answer by answer.
class ServingResiduals {
 public:
  ServingResiduals(const std::vector<ServingCase>& cases, std::vector<bool> used)
      : cases_(cases), used_(std::move(used)) {}

  [[nodiscard]] std::vector<double> weights() const {
    std::vector<double> weights;
    for (std::size_t i = 0; i < cases_.size(); ++i) {
      if (!used_[i]) continue;
      for (const ServingAnswer& answer : cases_[i].answers) weights.push_back(answer.weight);
    }
    return weights;
  }

  std::vector<double> operator()(const Calibration& calibration) {
    const std::vector<std::size_t> changed = changes(calibration);
    const bool whole = kept_.empty() || changed.size() > 1;
    std::vector<std::vector<double>> now = kept_;
    if (whole) now.assign(cases_.size(), {});
    for (std::size_t i = 0; i < cases_.size(); ++i) {
      if (used_[i] && (whole || depends(cases_[i], changed))) {
        now[i] = answer_errors(cases_[i], calibration);
      }
    }
    if (whole) remember(calibration, now);
    std::vector<double> flat;
    for (const std::vector<double>& errors : now) {
      flat.insert(flat.end(), errors.begin(), errors.end());
    }
    return flat;
  }

 private:
  [[nodiscard]] std::vector<std::size_t> changes(const Calibration& calibration) const {
    std::vector<std::size_t> changed;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (calibration.constants()[i].value != values_[i]) changed.push_back(i);
    }
    return changed;
  }

  [[nodiscard]] static bool depends(const ServingCase& item,
                                    const std::vector<std::size_t>& changed) {
    return std::any_of(changed.begin(), changed.end(), [&](std::size_t position) {
      return std::find(item.positions.begin(), item.positions.end(), position) !=
             item.positions.end();
    });
  }

  void remember(const Calibration& calibration, const std::vector<std::vector<double>>& errors) {
    kept_ = errors;
    values_.clear();
    for (const CalibrationConstant& c : calibration.constants()) values_.push_back(c.value);
  }

  const std::vector<ServingCase>& cases_;
  std::vector<bool> used_;
  std::vector<std::vector<double>> kept_;
  std::vector<double> values_;
};

}  // namespace orrery
