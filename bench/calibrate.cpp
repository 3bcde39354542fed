// bench/calibrate.cpp - fits catalog/calibration.yaml to published training runs.
#include <fmt/format.h>

#include <cstdlib>
#include <map>

#include "bench/fit.hpp"
#include "bench/training_fit.hpp"
#include "hardware/builtin_catalog.hpp"
#include "perf/builtin_calibration.hpp"
#include "workload/builtin_models.hpp"

using namespace orrery;

int main(int argc, char** argv) {
  const std::string path = argv[1];
  const std::string out = argc > 2 ? argv[2] : "";
  auto catalog = Catalog::load(builtin_catalog(), "");
  auto models = ModelCatalog::load(builtin_models(), "");
  auto calibration = Calibration::load(builtin_calibration(), {});
  if (!calibration) { fmt::print("{}\n", calibration.error().text()); return 1; }
  auto file = RunFile::load(path, *catalog, *models);
  if (!file) { fmt::print("{}\n", file.error().text()); return 1; }
  auto measured = read_measured_rows(path);
  std::vector<std::unique_ptr<TrainingCase>> cases;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    const auto* run = std::get_if<TrainingRun>(&file->runs[i]);
    if (run == nullptr) { if (auto* bad = std::get_if<BadRow>(&file->runs[i])) fmt::print("bad {} {}\n", bad->id, bad->error.text()); continue; }
    auto question = question_of(*run, *catalog);
    if (!question) { fmt::print("{} {}\n", run->id, question.error().text()); continue; }
    if (question->layout_open) continue;
    auto seconds = measured_seconds(measured[i], *question);
    if (!seconds || measured[i].out_of_memory) continue;
    auto c = std::make_unique<TrainingCase>();
    c->run = run; c->measured = &measured[i]; c->question = *question; c->seconds = *seconds;
    auto model = TrainingModel::make(c->question.job, c->question.machine, *calibration);
    if (!model) { fmt::print("{} {}\n", run->id, model.error().text()); continue; }
    close_recompute(c->question, *model);
    if (auto ok = model->check(c->question.plan); !ok) fmt::print("check {} {}\n", run->id, ok.error().text());
    cases.push_back(std::move(c));
  }
  fmt::print("{} cases\n", cases.size());
  std::vector<bool> used(cases.size(), true);
  const char* holdfold = std::getenv("FOLD");
  const char* holdsrc = std::getenv("SRC");
  if (holdfold) for (std::size_t i = 0; i < cases.size(); ++i) used[i] = cases[i]->measured->fold != std::atoi(holdfold);
  if (holdsrc) for (std::size_t i = 0; i < cases.size(); ++i) used[i] = cases[i]->measured->source != holdsrc;
  auto predict = [&](const TrainingCase& c, const Calibration& k) {
    auto model = TrainingModel::make(c.question.job, c.question.machine, k);
    return model->step_terms(c.question.plan, model->block_costs(c.question.plan));
  };
  Residuals residuals = [&](const Calibration& k) {
    std::vector<double> r;
    for (std::size_t i = 0; i < cases.size(); ++i) if (used[i]) r.push_back(std::log(predict(*cases[i], k).total() / cases[i]->seconds));
    return r;
  };
  FitOptions options;
  if (std::getenv("NOFIT") == nullptr) {
    Fit fit(*calibration, residuals, options);
    fmt::print("cost {}\n", fit.run());
    for (std::size_t i = 0; i < calibration->constants().size(); ++i) {
      const auto& c = calibration->constants()[i];
      if (c.spread > 0 && fit.rows_moved()[i] > 0) fmt::print("{:36s} {:10.4g} prior {:10.4g} z {:6.2f} rows {}\n", c.id, c.value, c.prior, (c.value - c.prior) / c.spread, fit.rows_moved()[i]);
    }
  }
  struct Sum { int n = 0; double abs = 0, bias = 0; std::vector<double> errors; };
  std::map<std::string, Sum> sums;
  std::FILE* dump = out.empty() ? nullptr : std::fopen(out.c_str(), "w");
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto& c = *cases[i];
    const Breakdown terms = predict(c, *calibration);
    const double error = terms.total() / c.seconds - 1;
    if (!((holdfold || holdsrc) && used[i])) {
      for (const std::string& key : {c.measured->source + "/" + c.run->accelerator->id, std::string("ALL"), std::string(c.measured->complete ? "COMPLETE" : "INCOMPLETE")}) {
        Sum& s = sums[key]; ++s.n; s.abs += std::abs(error); s.bias += error; s.errors.push_back(std::abs(error));
      }
    }
    if (dump) {
      nlohmann::json j; j["id"] = c.run->id; j["error"] = error; j["measured"] = c.seconds; j["seconds"] = terms.total(); j["held"] = !used[i];
      for (std::size_t t = 0; t < kTerms; ++t) if (terms.seconds[t] > 0) j["terms"][std::string(kTermNames[t])] = terms.seconds[t] / c.seconds;
      j["recompute"] = int(c.question.plan.recompute);
      fmt::print(dump, "{}\n", j.dump());
    }
  }
  if (dump) std::fclose(dump);
  for (auto& [key, s] : sums) {
    std::sort(s.errors.begin(), s.errors.end());
    fmt::print("{:44s} n {:4d} mape {:6.2f} bias {:6.2f} median {:6.2f} p90 {:6.2f}\n", key, s.n, 100 * s.abs / s.n, 100 * s.bias / s.n, 100 * s.errors[s.errors.size() / 2], 100 * s.errors[s.errors.size() * 9 / 10]);
  }
}
