// How long the planner takes to evaluate every plan of a job, and to find the best without doing
// so.
#include <string_view>

#include "bench/figure.hpp"
#include "perf/facts.hpp"
#include "planner/search.hpp"
#include "workload/models/model_catalog.hpp"

namespace orrery {
namespace {

struct Setting {
  std::string_view model;
  std::string_view accelerator;
  std::uint64_t accelerators = 0;
  TrainingJob job;
};

struct Prepared {
  TrainingModel model;
  PlanSpace space;
};

Prepared prepare(const Facts& facts, const Setting& setting) {
  const Accelerator* accelerator = *facts.catalog().require<Accelerator>(setting.accelerator);
  const Machine machine = *machine_of(
      facts.catalog(), {.accelerator = accelerator, .accelerators = setting.accelerators});
  TrainingJob job = setting.job;
  job.model = &(*facts.models().require(setting.model))->model;
  return {*TrainingModel::make(job, machine, facts.calibration()), space_of(machine)};
}

struct Timed {
  double seconds = 0;
  SearchResult result;
};

Timed timed(const Prepared& prepared, Effort effort) {
  Timed timed;
  timed.seconds = seconds_of([&] {
    timed.result = search(prepared.model, prepared.space, {.best = 5, .effort = effort});
  });
  return timed;
}

std::string counts(const SearchCounters& c) {
  return fmt::format("{} layouts, {} too large, {} pruned, {} priced", c.enumerated,
                     c.out_of_memory, c.pruned, c.evaluated);
}

void check_same(const SearchResult& a, const SearchResult& b) {
  if (a.best.empty() || b.best.empty() || a.best.front().plan != b.best.front().plan) {
    fmt::print(stderr, "bench_planner: pruned and exhaustive search differ\n");
    std::exit(1);
  }
}

/// Memory, layer costs and step of plans that fit, nothing shared between them.
void print_evaluation(const std::string& name, const Prepared& prepared) {
  constexpr std::size_t kPlans = 1000;
  constexpr int kRounds = 20;
  const SearchResult found = search(prepared.model, prepared.space, {.best = kPlans});
  double sum = 0;
  const double seconds = seconds_of([&] {
    for (int round = 0; round < kRounds; ++round) {
      for (const RankedPlan& ranked : found.best) {
        sum += prepared.model.evaluate(ranked.plan).seconds;
      }
    }
  });
  if (!(sum > 0)) fmt::print(stderr, "bench_planner: no plan to evaluate\n");
  print_figure({.bench = "planner",
                .name = name + ", one whole evaluation of a layout that fits",
                .value = seconds / (kRounds * static_cast<double>(found.best.size())) * 1e6,
                .unit = "us",
                .target = 5});
}

void print_both(const std::string& name, const Prepared& prepared, double target) {
  const Timed all = timed(prepared, Effort::kExhaustive);
  const Timed pruned = timed(prepared, Effort::kPruned);
  check_same(all.result, pruned.result);
  print_figure({.bench = "planner",
                .name = name + ", exhaustive: " + counts(all.result.counters),
                .value = all.seconds,
                .unit = "s",
                .target = 60});
  print_figure({.bench = "planner",
                .name = name + ", pruned: " + counts(pruned.result.counters),
                .value = pruned.seconds,
                .unit = "s",
                .target = target,
                .peer = "exhaustive",
                .peer_value = all.seconds});
  print_evaluation(name, prepared);
}

/// A known plan priced on other devices, as a scheduler does for every candidate.
void bench_reprice(const Facts& facts) {
  const Prepared prepared =
      prepare(facts, {.model = "llama-3.1-405b",
                      .accelerator = "h100",
                      .accelerators = 16384,
                      .job = {.sequence = Tokens{8192}, .global_batch = 2048}});
  const ParallelPlan plan{.tp = 8,
                          .pp = 16,
                          .vpp = 8,
                          .dp = 128,
                          .zero = 1,
                          .sequence_parallel = SequenceParallel::kOn};
  constexpr int kTimes = 100'000;
  double sum = 0;
  const double seconds = seconds_of([&] {
    for (int i = 0; i < kTimes; ++i) {
      const Placement placement{.domain_ranks = 8, .scale_out_quality = 1 - 1e-6 * i};
      sum += prepared.model.reprice(plan, placement).total();
    }
  });
  print_figure({.bench = "planner",
                .name = fmt::format("a known plan priced on other devices (mean step {:.2f} s)",
                                    sum / kTimes),
                .value = seconds / kTimes * 1e6,
                .unit = "us",
                .target = 2});
}

std::vector<std::uint32_t> numbers(std::uint32_t from, std::uint32_t to) {
  std::vector<std::uint32_t> all;
  for (std::uint32_t i = from; i <= to; ++i) all.push_back(i);
  return all;
}

/// The space for which Calculon is published, 11,698,528 of its layouts: as far as a plan has its
/// dimensions (its variants of tensor communication and of overlap are constants of the
/// calibration), widened by other dimensions until it holds as many.
void bench_gpt3(const Facts& facts) {
  Prepared prepared =
      prepare(facts, {.model = "gpt-3-175b",
                      .accelerator = "a100-80g",
                      .accelerators = 1024,
                      .job = {.global_batch = 1536, .attention = AttentionKernel::kUnfused}});
  prepared.space.tp_max = 96;
  prepared.space.sequence_parallel =
      std::vector<SequenceParallel>{SequenceParallel::kOff, SequenceParallel::kOn};
  prepared.space.cp = 1;
  prepared.space.abilities.offload = {
      {Offload::kNone, Offload::kOptimizer, Offload::kActivations, Offload::kBoth}};
  print_both("GPT-3 175B on 1024 A100", prepared, 2);
  prepared.space.cp = std::vector<std::uint32_t>{1, 2, 4, 8};
  prepared.space.vpp = numbers(1, 96);
  prepared.space.zero = numbers(0, 3);
  prepared.space.recompute_layers = numbers(0, 30);
  print_both("GPT-3 175B on 1024 A100, more dimensions", prepared, 2);
}

int run() {
  const Facts facts = *Facts::load({});
  bench_gpt3(facts);
  const Prepared prepared =
      prepare(facts, {.model = "llama-3.1-405b",
                      .accelerator = "h100",
                      .accelerators = 16384,
                      .job = {.sequence = Tokens(8192), .global_batch = 2048}});
  print_both("Llama-3.1-405B on 16384 H100", prepared, 1);
  bench_reprice(facts);
  return 0;
}

}  // namespace
}  // namespace orrery

int main() { return orrery::run(); }
