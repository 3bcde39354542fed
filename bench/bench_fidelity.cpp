// bench/bench_fidelity.cpp - how well the training model predicts runs it was not fitted to.
//
// Fits once for each fold and once for each source without it, predicts what was left out, and
// prints a table by source on standard error and figures on standard output. Draws predicted
// against measured to build/bench/fidelity.svg. The calibration it starts from is at its priors
// each time.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>
#include <future>
#include <map>

#include "base/text/text_table.hpp"
#include "bench/fidelity_plot.hpp"
#include "bench/figure.hpp"
#include "bench/residual_kinds.hpp"
#include "bench/training_fit.hpp"
#include "hardware/builtin_catalog.hpp"
#include "perf/builtin_calibration.hpp"
#include "workload/builtin_models.hpp"

namespace orrery {
namespace {

constexpr const char* kRuns = ORRERY_SOURCE_DIR "/data/runs/training_runs.json";

/// What others published about their own tools on these rows, as fractions.
struct PeerError {
  std::string_view source;
  std::string_view peer;
  double error;
};
constexpr PeerError kPeers[] = {
    {"vtrain_multi", "vTrain, published, with operator profiling", 0.1473},
    {"simumax_b200", "SimuMax, published (43 rows), measured operator tables", 0.056},
    {"sc21_t1", "Calculon, published by the design page for SC21 Table 1", 0.103},
    {"bloom", "Calculon on the BLOOM sweep, as the design page reports it", 0.246},
    {"korthikanti_t5", "Calculon, published, on the 8 rows it was built on", 0.0365}};

struct Held {
  const TrainingCase* one = nullptr;
  double predicted = 0;
  std::string kind;
};

struct Errors {
  double mape = 0;
  double p90 = 0;
  double bias = 0;
};

Errors errors_of(const std::vector<Held>& held) {
  std::vector<double> sizes;
  Errors errors;
  for (const Held& row : held) {
    const double error = row.predicted / row.one->seconds - 1;
    sizes.push_back(std::abs(error));
    errors.mape += std::abs(error) / static_cast<double>(held.size());
    errors.bias += error / static_cast<double>(held.size());
  }
  if (!sizes.empty()) errors.p90 = quantile(sizes, 0.9);
  return errors;
}

/// Fits without the cases `left_out` accepts and predicts those.
template <class LeftOut>
std::vector<Held> predict_held(const Calibration& start, const TrainingCases& cases,
                               const LeftOut& left_out) {
  Calibration calibration = start;
  reset_to_priors(calibration);
  fit_training(calibration, cases, [&](const TrainingCase& one) { return !left_out(one); });
  std::vector<Held> held;
  for (const TrainingCase& one : cases.cases) {
    if (!left_out(one)) continue;
    held.push_back({&one, predict_terms(one, calibration).total(), kind_of_question(one.question)});
  }
  return held;
}

/// Runs `jobs` two at a time, results in order.
std::vector<std::vector<Held>> in_pairs(std::vector<std::function<std::vector<Held>()>> jobs) {
  std::vector<std::vector<Held>> results;
  for (std::size_t i = 0; i < jobs.size(); i += 2) {
    std::future<std::vector<Held>> other;
    if (i + 1 < jobs.size()) other = std::async(std::launch::async, jobs[i + 1]);
    results.push_back(jobs[i]());
    if (other.valid()) results.push_back(other.get());
  }
  return results;
}

std::vector<Held> hold_out_folds(const Calibration& start, const TrainingCases& cases) {
  std::vector<std::function<std::vector<Held>()>> jobs;
  for (int fold = 0; fold < 5; ++fold) {
    const auto left_out = [fold](const TrainingCase& one) { return one.measured->fold == fold; };
    if (std::none_of(cases.cases.begin(), cases.cases.end(), left_out)) continue;
    jobs.push_back([&start, &cases, left_out] { return predict_held(start, cases, left_out); });
  }
  std::vector<Held> all;
  for (const std::vector<Held>& some : in_pairs(std::move(jobs))) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

std::map<std::string, std::vector<Held>> hold_out_sources(const Calibration& start,
                                                          const TrainingCases& cases) {
  std::map<std::string, std::vector<Held>> result;
  for (const TrainingCase& one : cases.cases) result[one.measured->source];
  std::vector<std::function<std::vector<Held>()>> jobs;
  for (const auto& entry : result) {
    const std::string source = entry.first;
    jobs.push_back([&start, &cases, source] {
      return predict_held(start, cases, [&source](const TrainingCase& one) {
        return one.measured->source == source;
      });
    });
  }
  for (const std::vector<Held>& some : in_pairs(std::move(jobs))) {
    if (!some.empty()) result[some.front().one->measured->source] = some;
  }
  return result;
}

/// Part of the rows inside an 80 % interval whose width comes from the rows of other folds.
std::map<const TrainingCase*, bool> covered(const std::vector<Held>& held) {
  std::map<const TrainingCase*, bool> result;
  for (int fold = 0; fold < 5; ++fold) {
    std::vector<KindedRatio> others;
    for (const Held& row : held) {
      if (row.one->measured->fold != fold) {
        others.push_back({row.kind, row.one->seconds / row.predicted});
      }
    }
    Calibration calibration;
    calibration.set_residuals(residual_kinds(others));
    for (const Held& row : held) {
      if (row.one->measured->fold != fold) continue;
      const ResidualKind kind = calibration.residual_of({row.kind, "training"});
      const double ratio = row.one->seconds / row.predicted;
      result[row.one] = kind.low <= ratio && ratio <= kind.high;
    }
  }
  return result;
}

std::string percent(double fraction) { return fmt::format("{:.1f}", 100 * fraction); }

struct SourceLine {
  std::string name;
  std::vector<Held> by_fold;
  std::vector<Held> by_source;
};

void print_table(const std::vector<SourceLine>& lines,
                 const std::map<const TrainingCase*, bool>& inside) {
  TextTable table({{"source"},
                   {"rows", Align::kRight},
                   {"MAPE %", Align::kRight},
                   {"p90 %", Align::kRight},
                   {"bias %", Align::kRight},
                   {"in 80 %", Align::kRight},
                   {"unseen source: MAPE %", Align::kRight},
                   {"bias %", Align::kRight},
                   {"peer %", Align::kRight},
                   {"peer"}});
  for (const SourceLine& line : lines) {
    const Errors fold = errors_of(line.by_fold);
    const Errors source = errors_of(line.by_source);
    double in = 0;
    for (const Held& row : line.by_fold) in += inside.at(row.one) ? 1 : 0;
    std::vector<std::string> cells = {line.name,
                                      fmt::format("{}", line.by_fold.size()),
                                      percent(fold.mape),
                                      percent(fold.p90),
                                      percent(fold.bias),
                                      percent(in / static_cast<double>(line.by_fold.size())),
                                      percent(source.mape),
                                      percent(source.bias)};
    for (const PeerError& peer : kPeers) {
      if (peer.source != line.name) continue;
      cells.push_back(percent(peer.error));
      cells.emplace_back(peer.peer);
    }
    table.add(std::move(cells));
  }
  fmt::print(stderr, "Training runs: fitted without the row's fold, and without its source\n{}",
             table.text());
}

void print_figures(const SourceLine& all, const std::map<const TrainingCase*, bool>& inside) {
  const Errors fold = errors_of(all.by_fold);
  const Errors source = errors_of(all.by_source);
  double in = 0;
  for (const Held& row : all.by_fold) in += inside.at(row.one) ? 1 : 0;
  const double rows = static_cast<double>(all.by_fold.size());
  print_figure({.bench = "fidelity",
                .name = "step time, held-out folds, MAPE",
                .value = 100 * fold.mape,
                .unit = "%",
                .target = 6});
  print_figure({.bench = "fidelity",
                .name = "step time, held-out folds, p90",
                .value = 100 * fold.p90,
                .unit = "%",
                .target = 12});
  print_figure({.bench = "fidelity",
                .name = "step time, unseen sources, MAPE",
                .value = 100 * source.mape,
                .unit = "%",
                .target = 10});
  print_figure({.bench = "fidelity",
                .name = "step time, unseen sources, absolute bias",
                .value = 100 * std::abs(source.bias),
                .unit = "%",
                .target = 4});
  print_figure({.bench = "fidelity",
                .name = "80 % intervals, distance of the coverage from 80",
                .value = std::abs(100 * in / rows - 80),
                .unit = "points",
                .target = 5});
}

/// Kendall's tau over the pairs of one model in the BLOOM sweep, and how much slower the layout the
/// model likes best is than the fastest measured one.
void print_ranking(const std::vector<Held>& held) {
  std::map<std::string, std::vector<const Held*>> models;
  for (const Held& row : held) {
    if (row.one->measured->source != "bloom") continue;
    const auto& m = row.one->measured->row.at("model");
    models[fmt::format("{} {} {}", m.at("layers").dump(), m.at("hidden").dump(),
                       m.at("heads").dump())]
        .push_back(&row);
  }
  double agree = 0;
  double pairs = 0;
  double regret = 0;
  double groups = 0;
  for (const auto& [name, rows] : models) {
    if (rows.size() < 4) continue;
    const auto rate = [](const Held* row, double seconds) {
      return row->one->question.job.global_batch / seconds;
    };
    double best = 0;
    double picked = 0;
    double picked_rate = 0;
    for (const Held* a : rows) {
      best = std::max(best, rate(a, a->one->seconds));
      if (rate(a, a->predicted) > picked) {
        picked = rate(a, a->predicted);
        picked_rate = rate(a, a->one->seconds);
      }
      for (const Held* b : rows) {
        if (a >= b) continue;
        const double measured = rate(a, a->one->seconds) - rate(b, b->one->seconds);
        const double predicted = rate(a, a->predicted) - rate(b, b->predicted);
        if (measured == 0 || predicted == 0) continue;
        ++pairs;
        agree += (measured > 0) == (predicted > 0) ? 1 : -1;
      }
    }
    regret += best / picked_rate - 1;
    ++groups;
  }
  if (pairs == 0) return;
  fmt::print(stderr,
             "BLOOM sweep: Kendall tau {:.2f} within a model, regret of the top pick "
             "{:.1f} % ({} models with 4 rows or more)\n",
             agree / pairs, 100 * regret / groups, groups);
  print_figure({.bench = "fidelity",
                .name = "BLOOM sweep, regret of the top pick",
                .value = 100 * regret / groups,
                .unit = "%",
                .target = 3});
  print_figure({.bench = "fidelity",
                .name = "BLOOM sweep, 1 - Kendall tau",
                .value = 1 - agree / pairs,
                .unit = "",
                .target = 0.2});
}

/// Throughput an accelerator, relative to the smallest system of the same model and layout, of the
/// same source: how many points of it the prediction is off.
void print_scaling(const std::vector<Held>& held) {
  std::map<std::string, std::vector<const Held*>> groups;
  for (const Held& row : held) {
    const ParallelPlan& plan = row.one->question.plan;
    const auto& m = row.one->measured->row.at("model");
    groups[fmt::format("{} {} {} {} {} {}", row.one->measured->source, m.at("name").dump(),
                       row.one->run->accelerator->id, row.one->run->sequence.value(), plan.tp,
                       row.one->measured->row.at("mbs").dump())]
        .push_back(&row);
  }
  double sum = 0;
  double worst = 0;
  double points = 0;
  for (auto& [name, rows] : groups) {
    const auto size = [](const Held* row) { return row->one->question.machine.ranks; };
    std::sort(rows.begin(), rows.end(),
              [&](const Held* a, const Held* b) { return size(a) < size(b); });
    if (size(rows.back()) < 4 * size(rows.front())) continue;
    const auto rate = [&](const Held* row, double seconds) {
      return row->one->question.job.global_batch / seconds / static_cast<double>(size(row));
    };
    const Held* first = rows.front();
    for (const Held* row : rows) {
      if (size(row) == size(first)) continue;
      const double measured = rate(row, row->one->seconds) / rate(first, first->one->seconds);
      const double predicted = rate(row, row->predicted) / rate(first, first->predicted);
      sum += std::abs(predicted - measured);
      worst = std::max(worst, std::abs(predicted - measured));
      ++points;
    }
  }
  if (points == 0) return;
  fmt::print(stderr,
             "Scaling: efficiency off by {:.1f} points on average, {:.1f} at worst ({} "
             "points, same layout on 4 times as many accelerators or more)\n",
             100 * sum / points, 100 * worst, points);
  print_figure({.bench = "fidelity",
                .name = "scaling, efficiency off by",
                .value = 100 * sum / points,
                .unit = "points",
                .target = 3});
}

void print_memory(const TrainingCases& cases, const Calibration& calibration) {
  double sum = 0;
  double rows = 0;
  double alarms = 0;
  double ran = 0;
  for (const TrainingCase& one : cases.cases) {
    const Result<TrainingModel> model =
        TrainingModel::make(one.question.job, one.question.machine, calibration);
    const TrainingMemory memory = memory_of(one.question, *model);
    ++ran;
    if (memory.total() > model->memory_limit()) ++alarms;
    if (!one.measured->allocated_gib) continue;
    const double gib = memory.allocated() / (1024.0 * 1024 * 1024);
    sum += std::abs(gib / *one.measured->allocated_gib - 1);
    ++rows;
  }
  print_figure({.bench = "fidelity",
                .name = "B200 allocated memory, MAPE",
                .value = 100 * sum / std::max(1.0, rows),
                .unit = "%",
                .target = 2,
                .peer = "SimuMax, published",
                .peer_value = 0.46});
  print_figure({.bench = "fidelity",
                .name = "runs that ran but are said not to fit",
                .value = 100 * alarms / ran,
                .unit = "%",
                .target = 5});
}

Status run() {
  Result<Catalog> catalog = Catalog::load(builtin_catalog(), {});
  if (!catalog) return forward_error(catalog);
  Result<ModelCatalog> models = ModelCatalog::load(builtin_models(), {});
  if (!models) return forward_error(models);
  Result<Calibration> calibration = Calibration::load(builtin_calibration(), {});
  if (!calibration) return forward_error(calibration);
  Result<TrainingCases> cases = load_training_cases(kRuns, *catalog, *models, *calibration);
  if (!cases) return forward_error(cases);

  const std::vector<Held> by_fold = hold_out_folds(*calibration, *cases);
  const std::map<std::string, std::vector<Held>> by_source = hold_out_sources(*calibration, *cases);
  const std::map<const TrainingCase*, bool> inside = covered(by_fold);
  SourceLine all{.name = "all"};
  SourceLine complete{.name = "all complete rows"};
  std::map<std::string, SourceLine> lines;
  const auto add = [&](const Held& row, auto member) {
    SourceLine& line = lines[row.one->measured->source];
    line.name = row.one->measured->source;
    (line.*member).push_back(row);
    (all.*member).push_back(row);
    if (row.one->measured->complete) (complete.*member).push_back(row);
  };
  std::vector<PlotPoint> points;
  for (const Held& row : by_fold) {
    add(row, &SourceLine::by_fold);
    points.push_back({row.one->measured->source, row.one->seconds, row.predicted});
  }
  for (const auto& [source, rows] : by_source) {
    for (const Held& row : rows) add(row, &SourceLine::by_source);
  }
  std::vector<SourceLine> shown;
  for (const auto& [name, line] : lines) shown.push_back(line);
  shown.push_back(complete);
  shown.push_back(all);
  print_table(shown, inside);
  print_figures(complete, inside);
  print_ranking(by_fold);
  print_scaling(by_fold);
  print_memory(*cases, *calibration);
  const std::string path = ORRERY_SOURCE_DIR "/build/bench/fidelity.svg";
  std::ofstream(path) << fidelity_svg(
      points, "Seconds a training step, predicted without the row's fold, against measured");
  fmt::print(stderr, "drawn: build/bench/fidelity.svg\n");
  return {};
}

}  // namespace
}  // namespace orrery

int main() {
  const orrery::Status done = orrery::run();
  if (done) return 0;
  fmt::print(stderr, "bench_fidelity: {}\n", done.error().text());
  return 1;
}
