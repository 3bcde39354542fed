// bench/calibrate.cpp - fits the constants of catalog/calibration.yaml to published training runs
// and writes the file anew: values, priors, how many rows each moves, residuals by kind from
// cross-validation.
//
//   calibrate RUNS [--out FILE] [--leave fold|source] [--dump FILE] [--as-is] [--check FILE]
//
// --as-is predicts with the constants compiled in, without fitting.
// --check predicts the rows of one more file, which no fit uses.
// With --leave, one fit for each fold or source without its rows: the errors are those of the rows
// a fit did not see, and no calibration is written. The dump is a JSON line a row (id, error,
// terms).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>

#include "base/format/field_writer.hpp"
#include "bench/residual_kinds.hpp"
#include "bench/training_fit.hpp"
#include "hardware/builtin_catalog.hpp"
#include "perf/builtin_calibration.hpp"
#include "workload/builtin_models.hpp"

namespace orrery {
namespace {

struct Arguments {
  std::string runs;
  std::string out;
  std::string dump;
  std::string check;
  std::string leave;  ///< "fold", "source" or nothing
  bool as_is = false;
};

Arguments read_arguments(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool valued = i + 1 < argc;
    if (word == "--out" && valued) {
      arguments.out = argv[++i];
    } else if (word == "--dump" && valued) {
      arguments.dump = argv[++i];
    } else if (word == "--check" && valued) {
      arguments.check = argv[++i];
    } else if (word == "--leave" && valued) {
      arguments.leave = argv[++i];
    } else if (word == "--as-is") {
      arguments.as_is = true;
    } else {
      arguments.runs = word;
    }
  }
  return arguments;
}

void print_constants(const Calibration& calibration, const std::vector<std::int64_t>& rows) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const CalibrationConstant& c = calibration.constants()[i];
    if (c.spread <= 0 || rows[i] == 0) continue;
    fmt::print("{:36} {:10.4g} prior {:10.4g} z {:6.2f} rows {}\n", c.id, c.value, c.prior,
               (c.value - c.prior) / c.spread, rows[i]);
  }
}

void print_errors(const std::map<std::string, std::vector<double>>& errors) {
  for (const auto& [name, list] : errors) {
    std::vector<double> sorted;
    double bias = 0;
    double sum = 0;
    for (const double error : list) {
      sorted.push_back(std::abs(error));
      sum += std::abs(error);
      bias += error;
    }
    std::sort(sorted.begin(), sorted.end());
    const auto n = static_cast<double>(list.size());
    fmt::print("{:44} n {:4} mape {:6.2f} bias {:6.2f} median {:6.2f} p90 {:6.2f}\n", name,
               list.size(), 100 * sum / n, 100 * bias / n, 100 * sorted[sorted.size() / 2],
               100 * sorted[sorted.size() * 9 / 10]);
  }
}

/// A case and its prediction.
struct Prediction {
  const TrainingCase* one = nullptr;
  Breakdown terms;
  TrainingMemory memory;

  [[nodiscard]] double error() const { return terms.total() / one->seconds - 1; }
};

Prediction predict(const TrainingCase& one, const Calibration& calibration) {
  return {&one, predict_terms(one, calibration), predict_memory(one, calibration)};
}

Json line_of(const Prediction& prediction) {
  const TrainingCase& one = *prediction.one;
  const TrainingMemory& memory = prediction.memory;
  Json line;
  line["id"] = one.run->id;
  line["error"] = prediction.error();
  line["measured"] = one.seconds;
  line["recompute"] = word_of(one.question.plan.recompute);
  for (std::size_t t = 0; t < kTerms; ++t) {
    if (prediction.terms.seconds[t] > 0) {
      line["terms"][std::string(kTermNames[t])] = prediction.terms.seconds[t] / one.seconds;
    }
  }
  line["memory"] = {{"weights", memory.weights},      {"gradients", memory.gradients},
                    {"optimizer", memory.optimizer},  {"activations", memory.activations},
                    {"transient", memory.transient},  {"gathered", memory.gathered},
                    {"allocated", memory.allocated()}};
  return line;
}

void report(const Arguments& arguments, const std::vector<Prediction>& predictions) {
  std::map<std::string, std::vector<double>> errors;
  std::ofstream dump;
  if (!arguments.dump.empty()) dump.open(arguments.dump);
  for (const Prediction& prediction : predictions) {
    const MeasuredRow& row = *prediction.one->measured;
    const double error = prediction.error();
    errors["all"].push_back(error);
    if (row.complete) errors["complete"].push_back(error);
    errors[kind_of_question(prediction.one->question)].push_back(error);
    errors[row.source].push_back(error);
    errors[row.source + " " + prediction.one->run->accelerator->id].push_back(error);
    if (dump) dump << line_of(prediction).dump() << '\n';
  }
  print_errors(errors);
}

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char letter : text) result += letter == '\'' ? "''" : std::string(1, letter);
  return result + "'";
}

Status write_file(const std::string& path, const Calibration& calibration,
                  const std::vector<std::int64_t>& rows) {
  std::ofstream out(path);
  out << "# Constants of the training cost model; perf/calibration.hpp says how they are read. "
         "Edit\n"
         "# priors, spreads, bounds and meanings by hand; scripts/calibrate fits the values, "
         "counts\n"
         "# the rows each moves and measures the residuals.\n"
         "apiVersion: orrery/v1\nkind: Calibration\nname: training\ncalibration:\n  version: 1\n"
         "  command: scripts/calibrate\n"
         "  fitted_on: published training runs with a stated layout, by least squares of the\n"
         "    logarithm of the step time with Huber's loss; residuals by cross-validation over "
         "folds\n"
         "constants:\n";
  for (std::size_t i = 0; i < calibration.constants().size(); ++i) {
    const CalibrationConstant& c = calibration.constants()[i];
    if (c.where.file != "catalog/calibration.yaml") continue;
    out << fmt::format(
        "- id: {}\n  value: {:.5g}\n  prior: {:.5g}\n  spread: {:.5g}\n  low: {:.5g}\n"
        "  high: {:.5g}\n  rows: {}\n  meaning: {}\n  source: {}\n",
        c.id, c.value, c.prior, c.spread, c.low, c.high, rows[i], quoted(c.meaning),
        quoted(c.source));
  }
  out << "residuals:\n";
  for (const ResidualKind& r : calibration.residuals()) {
    out << fmt::format("- kind: {}\n  rows: {}\n  mape: {:.4f}\n  low: {:.4f}\n  high: {:.4f}\n",
                       r.kind, r.rows, r.mape, r.low, r.high);
  }
  if (out.flush()) return {};
  return environment_error(path + ": writing failed");
}

/// The part of the rows that a case is left out with.
std::string part_of(const TrainingCase& one, const std::string& leave) {
  return leave == "source" ? one.measured->source : fmt::to_string(one.measured->fold);
}

/// Fits from the priors once for each part, without it; returns every row's prediction by the fit
/// that did not see it.
std::vector<Prediction> cross_validate(const Calibration& start, const TrainingCases& cases,
                                       const std::string& leave) {
  std::set<std::string> parts;
  for (const TrainingCase& one : cases.cases) parts.insert(part_of(one, leave));
  std::vector<Prediction> predictions;
  for (const std::string& part : parts) {
    const auto held = [&](const TrainingCase& one) { return part_of(one, leave) == part; };
    Calibration calibration = start;
    reset_to_priors(calibration);
    fit_training(calibration, cases, [&](const TrainingCase& one) { return !held(one); });
    for (const TrainingCase& one : cases.cases) {
      if (held(one)) predictions.push_back(predict(one, calibration));
    }
  }
  return predictions;
}

std::vector<KindedRatio> ratios_of(const std::vector<Prediction>& predictions) {
  std::vector<KindedRatio> ratios;
  for (const Prediction& one : predictions) {
    ratios.push_back({kind_of_question(one.one->question), 1 / (1 + one.error())});
  }
  return ratios;
}

Status run(const Arguments& arguments) {
  Result<Catalog> catalog = Catalog::load(builtin_catalog(), {});
  if (!catalog) return forward_error(catalog);
  Result<ModelCatalog> models = ModelCatalog::load(builtin_models(), {});
  if (!models) return forward_error(models);
  Result<Calibration> calibration = Calibration::load(builtin_calibration(), {});
  if (!calibration) return forward_error(calibration);
  Result<TrainingCases> cases =
      load_training_cases(arguments.runs, *catalog, *models, *calibration);
  if (!cases) return forward_error(cases);
  for (const std::string& note : cases->notes) fmt::print(stderr, "{}\n", note);
  if (!arguments.leave.empty()) {
    report(arguments, cross_validate(*calibration, *cases, arguments.leave));
    return {};
  }
  std::vector<std::int64_t> rows;
  if (!arguments.as_is) {
    reset_to_priors(*calibration);
    rows = fit_training(*calibration, *cases, [](const TrainingCase&) { return true; });
  }
  print_constants(*calibration, rows);
  std::vector<Prediction> predictions;
  for (const TrainingCase& one : cases->cases) predictions.push_back(predict(one, *calibration));
  report(arguments, predictions);
  if (!arguments.check.empty()) {
    Result<TrainingCases> checked =
        load_training_cases(arguments.check, *catalog, *models, *calibration);
    if (!checked) return forward_error(checked);
    predictions.clear();
    for (const TrainingCase& one : checked->cases)
      predictions.push_back(predict(one, *calibration));
    report(arguments, predictions);
  }
  if (arguments.out.empty()) return {};
  calibration->set_residuals(
      residual_kinds(ratios_of(cross_validate(*calibration, *cases, "fold"))));
  return write_file(arguments.out, *calibration, rows);
}

}  // namespace
}  // namespace orrery

int main(int argc, char** argv) {
  const orrery::Status done = orrery::run(orrery::read_arguments(argc, argv));
  if (done) return 0;
  fmt::print(stderr, "calibrate: {}\n", done.error().text());
  return 1;
}
