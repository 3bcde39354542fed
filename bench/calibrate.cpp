// bench/calibrate.cpp - fits the constants of catalog/calibration.yaml to published training runs
// and writes the file anew: values, priors, how many rows each moves, residuals by kind from
// cross-validation.
//
//   calibrate RUNS [--out FILE] [--fold N | --source NAME] [--dump FILE] [--as-is]
//
// --as-is predicts with the constants compiled in, without fitting.
// With --fold or --source the rows of that fold or source are left out, and nothing is written but
// the dump: a JSON line a row (id, held, error, terms).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>

#include "base/field_writer.hpp"
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
  std::string source;
  int fold = -1;
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
    } else if (word == "--source" && valued) {
      arguments.source = argv[++i];
    } else if (word == "--fold" && valued) {
      arguments.fold = std::atoi(argv[++i]);
    } else if (word == "--as-is") {
      arguments.as_is = true;
    } else {
      arguments.runs = word;
    }
  }
  return arguments;
}

bool left_out(const Arguments& arguments, const TrainingCase& one) {
  return one.measured->fold == arguments.fold || one.measured->source == arguments.source;
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

void report(const Arguments& arguments, const TrainingCases& cases,
            const Calibration& calibration) {
  std::map<std::string, std::vector<double>> errors;
  std::ofstream dump;
  if (!arguments.dump.empty()) dump.open(arguments.dump);
  const bool holding = arguments.fold >= 0 || !arguments.source.empty();
  for (const TrainingCase& one : cases.cases) {
    const Breakdown terms = predict_terms(one, calibration);
    const double error = terms.total() / one.seconds - 1;
    const bool held = holding && left_out(arguments, one);
    if (held || !holding) {
      errors["all"].push_back(error);
      if (one.measured->complete) errors["complete"].push_back(error);
      errors[one.measured->source + " " + one.run->accelerator->id].push_back(error);
    }
    Json line;
    line["id"] = one.run->id;
    line["held"] = held;
    line["error"] = error;
    line["measured"] = one.seconds;
    line["recompute"] = word_of(one.question.plan.recompute);
    for (std::size_t t = 0; t < kTerms; ++t) {
      if (terms.seconds[t] > 0) {
        line["terms"][std::string(kTermNames[t])] = terms.seconds[t] / one.seconds;
      }
    }
    const TrainingMemory memory = predict_memory(one, calibration);
    line["memory"] = {{"weights", memory.weights},      {"gradients", memory.gradients},
                      {"optimizer", memory.optimizer},  {"activations", memory.activations},
                      {"transient", memory.transient},  {"gathered", memory.gathered},
                      {"allocated", memory.allocated()}};
    if (dump) dump << line.dump() << '\n';
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

/// Fits once for each fold without it; every row's measured over predicted from the fit that did
/// not see it.
std::vector<KindedRatio> cross_validate(const Calibration& start, const TrainingCases& cases) {
  std::vector<KindedRatio> ratios;
  for (int fold = 0; fold < 5; ++fold) {
    const auto held = [fold](const TrainingCase& one) { return one.measured->fold == fold; };
    if (std::none_of(cases.cases.begin(), cases.cases.end(), held)) continue;
    Calibration calibration = start;
    reset_to_priors(calibration);
    fit_training(calibration, cases, [&](const TrainingCase& one) { return !held(one); });
    for (const TrainingCase& one : cases.cases) {
      if (!held(one)) continue;
      const double predicted = predict_terms(one, calibration).total();
      ratios.push_back({kind_of_question(one.question), one.seconds / predicted});
    }
  }
  return ratios;
}

Status run(const Arguments& arguments) {
  Result<Catalog> catalog = Catalog::load(builtin_catalog(), "");
  if (!catalog) return forward_error(catalog);
  Result<ModelCatalog> models = ModelCatalog::load(builtin_models(), "");
  if (!models) return forward_error(models);
  Result<Calibration> calibration = Calibration::load(builtin_calibration(), {});
  if (!calibration) return forward_error(calibration);
  Result<TrainingCases> cases =
      load_training_cases(arguments.runs, *catalog, *models, *calibration);
  if (!cases) return forward_error(cases);
  for (const std::string& note : cases->notes) fmt::print(stderr, "{}\n", note);
  std::vector<std::int64_t> rows;
  if (!arguments.as_is) {
    rows = fit_training(*calibration, *cases,
                        [&](const TrainingCase& one) { return !left_out(arguments, one); });
  }
  print_constants(*calibration, rows);
  report(arguments, *cases, *calibration);
  if (arguments.out.empty()) return {};
  calibration->set_residuals(residual_kinds(cross_validate(*calibration, *cases)));
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
