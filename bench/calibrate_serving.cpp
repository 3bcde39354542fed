// bench/calibrate_serving.cpp - fits catalog/calibration_serving.yaml to published serving runs and
// measured kernels, and shows how well rows held out are predicted.
//
//   calibrate_serving RUNS CALIBRATION fit     writes CALIBRATION again: values, residuals by fold
//   calibrate_serving RUNS CALIBRATION table   errors: fold, accelerator and laboratory held out
//
// Priors, bounds and meanings stay as they stand in the file; kinds of residuals are those of rows
// whose fold was held out.
#include <fmt/format.h>
#include <fmt/os.h>

#include <map>
#include <set>

#include "base/format/document.hpp"
#include "bench/fit.hpp"
#include "bench/serving_kernels.hpp"
#include "hardware/builtin_catalog.hpp"
#include "workload/builtin_models.hpp"

namespace orrery {
namespace {

struct Study {
  Catalog catalog;
  ModelCatalog models;
  RunFile runs;
  Calibration calibration;
  std::vector<ServingCase> cases;
};

/// Errors of the answers of one kind, log(predicted / measured).
using Errors = std::map<std::string, std::vector<double>>;

std::string file_text(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

Result<Study> read_study(const std::string& calibration) {
  Result<Catalog> catalog = Catalog::load(builtin_catalog(), {});
  if (!catalog) return forward_error(catalog);
  Result<ModelCatalog> models = ModelCatalog::load(builtin_models(), {});
  if (!models) return forward_error(models);
  const std::string text = file_text(calibration);
  const EmbeddedFile file{calibration, text};
  Result<Calibration> constants = Calibration::load({&file, 1}, {});
  if (!constants) return forward_error(constants);
  Study study{.catalog = *std::move(catalog), .models = *std::move(models)};
  study.calibration = *std::move(constants);
  return study;
}

Status read_cases(const std::string& path, Study& study) {
  Result<RunFile> runs = RunFile::load(path, study.catalog, study.models);
  if (!runs) return forward_error(runs);
  study.runs = *std::move(runs);
  study.cases = serving_cases(study.runs, read_measured_rows(path), study.calibration);
  add_kernel_cases(nlohmann::json::parse(file_text(path)), study.catalog, study.calibration,
                   study.cases);
  return {};
}

std::vector<std::int64_t> fit(const Study& study, const std::vector<bool>& used,
                              Calibration& calibration) {
  ServingResiduals residuals(study.cases, used);
  const Residuals function = [&](const Calibration& c) { return residuals(c); };
  FitOptions options{.iterations = 12, .noise = 0.10};
  options.weights = residuals.weights();
  Fit run(calibration, function, options);
  run.run();
  return run.rows_moved();
}

using Part = std::function<std::string(const ServingCase&)>;

/// Holds each part of the rows out in turn; `into` gets each held-out row's errors.
void cross_validate(const Study& study, const Part& part,
                    const std::function<void(const ServingCase&, std::vector<double>)>& into) {
  std::set<std::string> parts;
  for (const ServingCase& item : study.cases) {
    if (item.run != nullptr) parts.insert(part(item));
  }
  for (const std::string& held : parts) {
    Calibration calibration = study.calibration;
    for (std::size_t i = 0; i < calibration.constants().size(); ++i) {
      calibration.set_value(i, calibration.constants()[i].prior);
    }
    std::vector<bool> used;
    for (const ServingCase& item : study.cases) used.push_back(part(item) != held);
    fit(study, used, calibration);
    for (const ServingCase& item : study.cases) {
      if (item.run != nullptr && part(item) == held) into(item, answer_errors(item, calibration));
    }
  }
}

double quantile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))];
}

std::vector<double> absolute(const std::vector<double>& logs) {
  std::vector<double> errors;
  for (const double e : logs) errors.push_back(std::abs(std::exp(e) - 1));
  return errors;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

void print_errors(const std::string& title, const Errors& errors) {
  fmt::print("\n| {} | rows | median % | mean % | p90 % | within 2x % | bias % |\n", title);
  fmt::print("|---|---|---|---|---|---|---|\n");
  for (const auto& [name, logs] : errors) {
    const std::vector<double> sizes = absolute(logs);
    const auto close =
        std::count_if(logs.begin(), logs.end(), [](double e) { return std::abs(e) < std::log(2); });
    fmt::print("| {} | {} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {:+.1f} |\n", name, logs.size(),
               100 * quantile(sizes, 0.5), 100 * mean(sizes), 100 * quantile(sizes, 0.9),
               100 * static_cast<double>(close) / static_cast<double>(logs.size()),
               100 * (std::exp(quantile(logs, 0.5)) - 1));
  }
}

std::string fold_of(const ServingCase& item) { return std::to_string(item.fold); }

void print_table(const Study& study) {
  Errors folds;
  cross_validate(study, fold_of, [&](const ServingCase& item, const std::vector<double>& logs) {
    folds["all"].push_back(logs[0]);
    folds["of " + item.group].push_back(logs[0]);
    if (logs.size() > 1) folds["first token, " + item.group].push_back(logs[1]);
  });
  print_errors("fold held out", folds);
  for (const bool laboratory : {false, true}) {
    Errors errors;
    const Part part = [&](const ServingCase& item) {
      return laboratory ? item.group : item.accelerator;
    };
    cross_validate(study, part, [&](const ServingCase& item, const std::vector<double>& logs) {
      errors[part(item)].push_back(logs[0]);
      errors["all"].push_back(logs[0]);
    });
    print_errors(laboratory ? "laboratory held out" : "accelerator held out", errors);
  }
}

/// Percentiles of measured over predicted of rows whose fold was held out.
std::vector<ResidualKind> residuals_by_fold(const Study& study) {
  Errors errors;
  cross_validate(study, fold_of, [&](const ServingCase& item, const std::vector<double>& logs) {
    const std::string load = item.served ? "server" : "offline";
    errors["serving.throughput." + load].push_back(logs[0]);
    const bool first = item.answers.front().metric == "ttft_s";
    if (logs.size() > 1 || first) {
      errors["serving.first_token." + load].push_back(logs.back());
    }
  });
  std::vector<ResidualKind> kinds;
  for (const auto& [name, logs] : errors) {
    kinds.push_back({.kind = name,
                     .rows = static_cast<std::int64_t>(logs.size()),
                     .mape = mean(absolute(logs)),
                     .low = std::exp(-quantile(logs, 0.9)),
                     .high = std::exp(-quantile(logs, 0.1))});
  }
  return kinds;
}

void write_calibration(const std::string& path, const Study& study,
                       const std::vector<std::int64_t>& moved) {
  auto out = fmt::output_file(path);
  out.print(
      "# Constants of the serving model. Values and residuals are fitted; the rest is by hand.\n"
      "apiVersion: orrery/v1\nkind: Calibration\nname: serving\ncalibration:\n"
      "  version: 1\n  command: scripts/calibrate_serving\n"
      "  fitted_on: {} cases, complete published serving rows (folds 1 to 4) and measured\n"
      "    kernels\nconstants:\n",
      study.cases.size());
  for (std::size_t i = 0; i < study.calibration.constants().size(); ++i) {
    const CalibrationConstant& c = study.calibration.constants()[i];
    out.print(
        "- id: {}\n  value: {:.5g}\n  prior: {:.5g}\n  spread: {:.5g}\n  low: {:.5g}\n"
        "  high: {:.5g}\n  rows: {}\n  meaning: '{}'\n  source: '{}'\n",
        c.id, c.value, c.prior, c.spread, c.low, c.high, moved[i], c.meaning, c.source);
  }
  out.print("residuals:\n");
  for (const ResidualKind& kind : study.calibration.residuals()) {
    out.print("- kind: {}\n  rows: {}\n  mape: {:.4f}\n  low: {:.4f}\n  high: {:.4f}\n", kind.kind,
              kind.rows, kind.mape, kind.low, kind.high);
  }
}

int run(const std::string& runs, const std::string& calibration, const std::string& verb) {
  Result<Study> study = read_study(calibration);
  if (study) {
    if (Status read = read_cases(runs, *study); !read) study = forward_error(read);
  }
  if (!study) {
    fmt::print(stderr, "{}\n", study.error().text());
    return 2;
  }
  fmt::print("{} cases\n", study->cases.size());
  if (verb == "table") {
    print_table(*study);
    return 0;
  }
  for (std::size_t i = 0; i < study->calibration.constants().size(); ++i) {
    study->calibration.set_value(i, study->calibration.constants()[i].prior);
  }
  std::vector<ResidualKind> kinds = residuals_by_fold(*study);
  const std::vector<bool> all(study->cases.size(), true);
  Calibration fitted = study->calibration;
  const std::vector<std::int64_t> moved = fit(*study, all, fitted);
  study->calibration = std::move(fitted);
  study->calibration.set_residuals(std::move(kinds));
  write_calibration(calibration, *study, moved);
  return 0;
}

}  // namespace
}  // namespace orrery

int main(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr, "usage: calibrate_serving RUNS CALIBRATION fit|table\n");
    return 2;
  }
  return orrery::run(argv[1], argv[2], argv[3]);
}
