// How fast a waiting job is explained, how long that occupies a controller's loop, and how often
// forecasts of starts hold.
//
//   bench_explain [--only cost|loop|forecasts] [--seeds N]
//
// Loop: the whole explanation, as it would be computed there, beside holding the situation for a
// thread that computes it.
// Forecasts: made-up traces of 64 accelerators of two types asked for twice what they have, run
// times estimated with a log-normal error; of jobs that wait longer than ten minutes, the share
// that starts before the median and before the ninth decile of the first forecast. Right ones: one
// half and nine tenths.
#include <iterator>
#include <map>
#include <memory>
#include <string_view>

#include "bench/bench_cluster.hpp"
#include "bench/queue_generator.hpp"
#include "control/control_facts.hpp"
#include "control/core/held_situation.hpp"
#include "fleet/spec/accelerator_fleet.hpp"
#include "scheduler/explain/explain.hpp"
#include "twin/simulation.hpp"
#include "workload/trace/trace_generator.hpp"

namespace orrery {
namespace {

const ExplainNames kNumbers{[](JobId id) { return fmt::format("job-{}", id.value()); }};

/// Pods of 32 nodes of 8.
std::string fleet_text(int halls, int pods) {
  std::string text =
      "apiVersion: orrery/v1\nkind: Fleet\nname: bench\nsites:\n- name: site\n  halls:\n";
  for (int hall = 1; hall <= halls; ++hall) {
    fmt::format_to(std::back_inserter(text),
                   "  - name: hall-{}\n    pods:\n    - name: pod\n      count: {}\n      racks:\n"
                   "      - count: 8\n        cooling: in-row-or-dense-air\n"
                   "        nodes: [{{type: dgx-h100, count: 4}}]\n",
                   hall, pods);
  }
  return text;
}

constexpr const char* kTenants =
    "apiVersion: orrery/v1\nkind: Tenants\nname: t\ntenants:\n"
    "- {name: a, weight: 2}\n- {name: b}\n- {name: c}\n";

void bench_cost() {
  constexpr std::size_t kQueue = 300;
  constexpr int kAsked = 20;
  const Facts facts = must(Facts::load({}));
  BenchCluster cluster(facts, fleet_text(12, 33), kTenants);
  QueueGenerator generator(cluster.fleet().topology(), cluster.tenants(),
                           {.seed = 1, .classes = 500, .devices_max = 1024});
  for (int refused = 0; refused < 200;) refused += cluster.run(generator.next()) ? 0 : 1;
  for (std::size_t i = 0; i < kQueue; ++i) cluster.submit(generator.next());
  for (const char* name : {"hardware-aware", "capacity", "easy"}) {
    const Policy policy = must(policy_named(name));
    (void)cluster.decide(policy, PassKind::kFull);
    const Situation now = cluster.situation();
    double worst = 0;
    double sum = 0;
    for (int i = 0; i < kAsked; ++i) {
      const JobId job = now.waiting[now.waiting.size() * static_cast<std::size_t>(i) / kAsked].id;
      const double seconds = seconds_of([&] { (void)explain(now, policy, job, kNumbers); });
      worst = std::max(worst, seconds);
      sum += seconds;
    }
    const std::string of = fmt::format("explain a job of {}, {} nodes, {} running, {} waiting",
                                       name, cluster.fleet().topology().node_count(),
                                       now.running.size(), now.waiting.size());
    print_figure({"explain", of + ", mean", sum / kAsked * 1e3, "ms", 50.0, "", std::nullopt});
    print_figure({"explain", of + ", worst", worst * 1e3, "ms", std::nullopt, "", std::nullopt});
  }
}

void bench_loop() {
  constexpr std::size_t kQueue = 20'000;
  constexpr int kAsked = 20;
  const Facts facts = must(Facts::load({}));
  BenchCluster cluster(facts, fleet_text(1, 31), kTenants);
  QueueGenerator generator(cluster.fleet().topology(), cluster.tenants(),
                           {.seed = 1, .classes = 500, .devices_max = 1024});
  for (int refused = 0; refused < 200;) refused += cluster.run(generator.next()) ? 0 : 1;
  for (std::size_t i = 0; i < kQueue; ++i) cluster.submit(generator.next());
  const Policy policy = must(policy_named("hardware-aware"));
  (void)cluster.decide(policy, PassKind::kFull);
  const Situation now = cluster.situation();
  const std::vector<std::shared_ptr<const Submission>> submissions(
      now.waiting.size() + now.running.size(), std::make_shared<const Submission>());
  double whole = 0;
  double holding = 0;
  for (int i = 0; i < kAsked; ++i) {
    const JobId job = now.waiting[now.waiting.size() * static_cast<std::size_t>(i) / kAsked].id;
    whole += seconds_of([&] { (void)explain(now, policy, job, kNumbers); });
    std::unique_ptr<const HeldSituation> held;
    holding += seconds_of([&] {
      held = std::make_unique<const HeldSituation>(
          now, HeldSituation::Shared{.policy = policy,
                                     .fleet = cluster.fleet().publish(),
                                     .submissions = submissions,
                                     .tenants = nullptr});
    });
  }
  const std::string of =
      fmt::format("explain with {} nodes, {} running, {} waiting",
                  cluster.fleet().topology().node_count(), now.running.size(), kQueue);
  print_figure({"explain", of + ", computed on the loop, mean", whole / kAsked * 1e3, "ms",
                std::nullopt, "", std::nullopt});
  print_figure({"explain", of + ", held for a thread, mean", holding / kAsked * 1e3, "ms",
                std::nullopt, "", std::nullopt});
}

struct Forecast {
  Instant median;
  Instant late;
};

struct Held {
  std::uint32_t jobs = 0;
  std::uint32_t median = 0;
  std::uint32_t late = 0;
};

class ForecastRun64 {
 public:
  ForecastRun64(ControlFacts& cluster, std::uint64_t seed) : cluster_(cluster) {
    const TraceShape shape{.accelerators = 64, .utilisation = 2, .jobs = 300, .tenants = 4};
    trace_ = generate_trace(shape, seed);
    TraceJobOptions options;
    options.rules = rules_;
    options.information = Information::kEstimate;
    options.seed = seed;
    jobs_ = must(trace_jobs(trace_, cluster.resolve_context({}), cluster.classes(), options));
  }

  void play(const Policy& policy, Held& held) {
    const Instant begin = trace_.first_submit();
    const ControlSetup setup = cluster_.setup(policy, begin);
    World::Facts world{rules_, {}, setup.plans};
    world.calibration = &cluster_.facts().calibration;
    world.timing.warm_restart = Duration::seconds(60);
    std::map<JobId, Forecast> first;
    SimulationHooks hooks;
    hooks.tick = [&](Instant at, const State& state) { look(at, state, first); };
    Simulation simulation({setup, std::move(world), jobs_.jobs, std::move(hooks), {}});
    simulation.run();
    for (const JobOutcome& outcome : simulation.outcomes()) {
      const auto forecast = first.find(outcome.job);
      if (forecast == first.end()) continue;
      if (outcome.start != Instant::max() && outcome.start - outcome.submit < Duration::minutes(10))
        continue;
      ++held.jobs;
      held.median += outcome.start <= forecast->second.median ? 1 : 0;
      held.late += outcome.start <= forecast->second.late ? 1 : 0;
    }
  }

 private:
  /// Records the first forecast of every job once it has waited for a moment.
  static void look(Instant at, const State& state, std::map<JobId, Forecast>& first) {
    const Situation now = state.situation(at);
    for (const WaitingJob& job : now.waiting) {
      if (job.submitted >= at || first.contains(job.id)) continue;
      const auto when = explain(now, state.policy(), job.id, kNumbers).when;
      const auto after = [&](Duration time) {
        return time == Duration::max() ? Instant::max() : at + time;
      };
      first[job.id] = when ? Forecast{after(when->median), after(when->late)}
                           : Forecast{Instant::max(), Instant::max()};
    }
  }

  ControlFacts& cluster_;
  const ReplayRules rules_ = must(replay_rules("orrery"));
  Trace trace_;
  TraceJobs jobs_;
};

void bench_forecasts(std::uint64_t seeds) {
  const Facts facts = must(Facts::load({}));
  const AcceleratorFleet fleet =
      must(fleet_of_accelerators(facts.catalog(), {{{"h100", 32}, {"mi300x", 32}}, std::nullopt}));
  const Document document =
      must(Document::parse("apiVersion: orrery/v1\nkind: Tenants\nname: t\ntenants:\n"
                           "- {name: tenant-1, weight: 2}\n- {name: tenant-2}\n- {name: tenant-3}\n"
                           "- {name: tenant-4}\n",
                           "tenants.yaml"));
  const TenantsSpec tenants = must(read_tenants_spec(document));
  for (const TenantsSpec* shared : {static_cast<const TenantsSpec*>(nullptr), &tenants}) {
    for (const char* name : {"easy", "capacity", "hardware-aware"}) {
      Held held;
      for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        const auto cluster = must(ControlFacts::make(facts.view(), fleet.spec, shared));
        ForecastRun64(*cluster, seed).play(must(policy_named(name)), held);
      }
      const std::string of =
          fmt::format("{}{}, {} jobs that waited", name, shared ? ", 4 tenants" : "", held.jobs);
      const double all = std::max(1u, held.jobs) / 100.0;
      print_figure({"explain", "started before the median, " + of, held.median / all, "%",
                    std::nullopt, "", std::nullopt});
      print_figure({"explain", "started before the ninth decile, " + of, held.late / all, "%",
                    std::nullopt, "", std::nullopt});
    }
  }
}

int run(int argc, char** argv) {
  std::string only;
  std::uint64_t seeds = 10;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view option = argv[i];
    if (option == "--only") only = argv[i + 1];
    if (option == "--seeds") seeds = static_cast<std::uint64_t>(std::atoll(argv[i + 1]));
  }
  if (only.empty() || only == "cost") bench_cost();
  if (only.empty() || only == "loop") bench_loop();
  if (only.empty() || only == "forecasts") bench_forecasts(seeds);
  return 0;
}

}  // namespace
}  // namespace orrery

int main(int argc, char** argv) { return orrery::run(argc, argv); }
