// bench/bench_twin.cpp - how fast virtual time passes, and the share of a large job's time lost to
// failures.
//
//   bench_twin [--traces DIR] [--only NAME] [--days N] [--policy NAME]
//
//   DIR holds train/philly_12vc.csv.gz; NAME is fifo, day, year, million or large-job. N: so many
//   in place of a year, and where it stands every fifth day.
//   NAME: of the year, as for `orrery simulate`.
//
// Simulation alone: from the first input to the last event, without reading the trace. Peers are
// limits: real time itself, and the closed form of the effective training time.
#include <sys/resource.h>

#include <string_view>

#include "bench/figure.hpp"
#include "fleet/spec/accelerator_fleet.hpp"
#include "fleet/spec/builder.hpp"
#include "hardware/builtin_catalog.hpp"
#include "perf/builtin_calibration.hpp"
#include "perf/training/goodput.hpp"
#include "twin/policy_run.hpp"
#include "workload/builtin_models.hpp"
#include "workload/trace/trace_generator.hpp"
#include "workload/trace/trace_mapping.hpp"
#include "workload/trace_input/trace_reader.hpp"

namespace orrery {
namespace {

/// Ends the program with the message of an error.
template <class T>
T or_stop(Result<T> result) {
  if (!result) {
    fmt::print(stderr, "bench_twin: {}\n", result.error().text());
    std::exit(1);
  }
  return *std::move(result);
}

class Bench {
 public:
  Bench()
      : catalog_(or_stop(Catalog::load(builtin_catalog(), {}))),
        calibration_(or_stop(Calibration::load(builtin_calibration(), {}))),
        models_(or_stop(ModelCatalog::load(builtin_models(), {}))) {}

  [[nodiscard]] const Catalog& catalog() const { return catalog_; }

  std::unique_ptr<ControlFacts> cluster(std::vector<AcceleratorCount> accelerators) {
    const AcceleratorFleet fleet =
        or_stop(fleet_of_accelerators(catalog_, {std::move(accelerators), std::nullopt}));
    return cluster_of(fleet.spec);
  }
  std::unique_ptr<ControlFacts> cluster_of(const FleetSpec& fleet) {
    return or_stop(ControlFacts::make({catalog_, calibration_, models_}, fleet, nullptr));
  }

 private:
  Catalog catalog_;
  Calibration calibration_;
  ModelCatalog models_;
};

struct Timed {
  PolicyRun run;
  double seconds = 0;
};

/// Parameters of a run beside its cluster and jobs.
struct Terms {
  std::string policy;
  std::string rules = "orrery";
  std::optional<FailureSpec> failures;
  std::uint32_t spares = 0;
  WorldTiming timing = {};
  std::optional<Duration> span;  ///< span of the trace to simulate; none: to its end
  std::function<void(Instant, const Simulation&)> progress;
};

Timed play(ControlFacts& cluster, const Trace& trace, TraceJobOptions options, const Terms& terms) {
  options.rules = or_stop(replay_rules(terms.rules));
  const Topology& fleet = cluster.topology();
  options.speed = [&fleet](std::string_view model, FleetTypeId type) {
    return type_speed(model_class(model), fleet.accelerator(type),
                      fleet.accelerator(FleetTypeId(0)));
  };
  const TraceJobs jobs =
      or_stop(trace_jobs(trace, cluster.resolve_context({}), cluster.classes(), options));
  PolicyRunInputs in{.cluster = cluster,
                     .jobs = jobs,
                     .label = terms.policy,
                     .policy = or_stop(policy_under(options.rules, terms.policy)),
                     .rules = options.rules};
  in.begin = trace.first_submit();
  in.failures = terms.failures;
  in.spares = terms.spares;
  in.timing = terms.timing;
  if (terms.span) in.until = in.begin + *terms.span;
  in.progress = terms.progress;
  Timed timed;
  timed.seconds = seconds_of([&] { timed.run = or_stop(run_policy(in)); });
  return timed;
}

void bench_fifo(Bench& bench, const std::string& traces) {
  Trace trace;
  std::string name = "64,223 jobs made up like Philly, fifo";
  if (traces.empty()) {
    trace = generate_trace({.accelerators = 2496, .jobs = 64'223, .span = std::nullopt}, 1);
  } else {
    trace = or_stop(load_trace(traces + "/train/philly_12vc.csv.gz", {}));
    name = "64,223 Philly jobs, fifo";
  }
  const auto cluster = bench.cluster({{"v100", 2496}});
  const Timed timed = play(*cluster, trace, {}, {.policy = "fifo", .rules = "helios"});
  print_figure({"twin", name, timed.seconds, "s", 0.5, "", std::nullopt});
  print_figure(
      {"twin", "events of it a job",
       static_cast<double>(timed.run.summary.events) / static_cast<double>(timed.run.summary.jobs),
       "events", std::nullopt, "", std::nullopt});
}

/// What passes cost on average, with all events between them.
void print_passes(const Timed& timed, std::string_view what) {
  const Core::PassCounts& passes = timed.run.summary.passes;
  const auto count = static_cast<double>(passes.incremental + passes.full);
  print_figure({"twin",
                fmt::format("mean pass of {}, with all events between: {} incremental, {} full",
                            what, passes.incremental, passes.full),
                timed.seconds * 1e6 / count, "us", 100.0, "", std::nullopt});
}

/// A busy day of short jobs; then the long ones run on.
void bench_day(Bench& bench) {
  const auto cluster = bench.cluster({{"h100", 50'000}, {"h200", 50'000}});
  TraceShape shape{.style = TraceStyle::kAcme, .accelerators = 100'000, .utilisation = 0.8};
  shape.span = Duration::hours(24);
  const Trace trace = generate_trace(shape, 1);
  const FailureSpec failures = *or_stop(bench.catalog().require<FailureSpec>("rsc1"));
  TraceJobOptions options;
  options.restart = Duration::seconds(60);
  const Timed timed = play(*cluster, trace, options,
                           {.policy = "hardware-aware", .rules = "orrery", .failures = failures});
  constexpr double kTimesRealTime = 10'000;
  const double makespan = timed.run.summary.makespan_s;
  print_figure({"twin",
                fmt::format("default policy, 12,500 nodes, {} jobs, failures: {:.0f} virtual days",
                            timed.run.summary.jobs, makespan / 86400),
                timed.seconds, "s", makespan / kTimesRealTime, "real time", makespan});
  print_passes(timed, "it");
}

/// 200,000 jobs over a year of 100,000 accelerators. Jobs of the published sizes would leave such a
/// fleet idle, so they are `wider` and `longer` than drawn: whole nodes, days in place of hours.
Trace year_trace(std::uint32_t accelerators) {
  constexpr std::uint32_t kJobs = 200'000;
  constexpr std::uint32_t kWider = 8;
  constexpr double kLoad = 0.8;
  TraceShape shape{.style = TraceStyle::kAcme, .accelerators = accelerators / kWider};
  shape.utilisation = kLoad;
  shape.jobs = kJobs;
  Trace trace = generate_trace(shape, 1);
  const Instant first = trace.first_submit();
  const Duration span = trace.jobs.back().submit - first;
  const double longer = (Duration::hours(24) * 365).count_seconds() / span.count_seconds();
  const auto stretch = [longer](Duration time) {
    return Duration::from_seconds(time.count_seconds() * longer);
  };
  for (TraceJob& job : trace.jobs) {
    job.submit = first + stretch(job.submit - first);
    job.run = stretch(job.run);
    job.accelerators *= kWider;
  }
  return trace;
}

double cpu_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

void bench_year(Bench& bench, const std::string& policy, std::optional<std::uint32_t> days) {
  const auto cluster = bench.cluster({{"h100", 50'000}, {"h200", 50'000}});
  const FailureSpec failures = *or_stop(bench.catalog().require<FailureSpec>("rsc1"));
  TraceJobOptions options;
  options.restart = Duration::seconds(60);
  const Trace trace = year_trace(100'000);
  Terms terms{.policy = policy, .rules = "orrery", .failures = failures};
  const Duration day = Duration::hours(24);
  terms.span = day * days.value_or(365);  // the last job would end long after
  std::int64_t said = 0;
  terms.progress = [&, first = trace.first_submit()](Instant now, const Simulation& run) {
    const std::int64_t today = (now - first).count_ns() / day.count_ns();
    if (!days || today < said + 5) return;
    said = today;
    const State& state = run.state();
    const Core::PassCounts& passes = run.core().passes();
    fmt::print(stderr, "day {}: {:.1f} s of CPU, {} and {} passes, {} wait, {} run\n", today,
               cpu_seconds(), passes.incremental, passes.full, state.waiting().size(),
               state.running().size());
  };
  const Timed timed = play(*cluster, trace, options, terms);
  if (days) fmt::print(stderr, "history {:016x}\n", timed.run.history);
  const SimulationSummary& summary = timed.run.summary;
  print_figure(
      {"twin",
       fmt::format("default policy, 12,500 nodes, {} jobs in a year, {} jobs hit by faults, {:.0f} "
                   "% in use, {} events",
                   summary.jobs, summary.faults, 100 * summary.utilization, summary.events),
       timed.seconds, "s", 60, "real time", summary.makespan_s});
  print_passes(timed, "the year");
}

/// Pods of 8 racks of 4 DGX H100 on a rail-only network, as bench_fleet has them: 131,072 nodes.
constexpr std::string_view kMillion = R"(apiVersion: orrery/v1
kind: Fleet
name: million
sites:
- name: site
  halls:
  - name: hall
    rows: {racks: 8, capacity: 400 kW}
    pods:
    - name: su
      count: 4096
      racks:
      - count: 8
        cooling: in-row-or-dense-air
        nodes: [{type: dgx-h100, count: 4}]
  fabrics:
  - {type: roce-400-th5, topology: rail-only-fat-tree}
)";

/// The largest fleet: filled by gangs of all sizes, an hour later empty again.
void bench_million(Bench& bench) {
  constexpr std::uint32_t kAccelerators = 1'048'576;
  const Document document = or_stop(Document::parse(std::string(kMillion), "million.yaml"));
  const auto cluster = bench.cluster_of(or_stop(read_fleet_spec(document)));
  Trace trace;
  std::uint32_t left = kAccelerators;
  for (std::uint32_t i = 0; left > 0; ++i) {
    TraceJob& job = trace.jobs.emplace_back();
    job.name = fmt::format("job-{}", i);
    job.submit = Instant() + Duration::milliseconds(10) * i;
    job.run = Duration::hours(1);
    job.accelerators = std::min<std::uint32_t>(left, 1U << (i % 13));
    left -= job.accelerators;
  }
  const FailureSpec failures = *or_stop(bench.catalog().require<FailureSpec>("rsc1"));
  const Timed timed = play(*cluster, trace, {}, {.policy = "hardware-aware", .failures = failures});
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  constexpr double kKibInGib = 1024.0 * 1024.0;
  print_figure({"twin",
                fmt::format("131,072 nodes filled by {} gangs: memory of the process",
                            timed.run.summary.jobs),
                static_cast<double>(used.ru_maxrss) / kKibInGib, "GiB", 16, "", std::nullopt});
  print_figure({"twin", "time of it", timed.seconds, "s", std::nullopt, "real time",
                timed.run.summary.makespan_s});
}

/// One minus the effective training time ratio of a month of work on 16,384 accelerators.
double lost_share(Bench& bench, const WorldTiming& timing, std::uint32_t spares) {
  const auto cluster = bench.cluster({{"h100", 16'712}});
  Trace trace;
  TraceJob& job = trace.jobs.emplace_back();
  job.name = "pretrain";
  job.run = Duration::hours(24) * 30;
  job.accelerators = 16'384;
  TraceJobOptions options;
  options.restart = Duration::seconds(300);
  options.checkpoint_cost = Duration::milliseconds(500);
  Terms terms{.policy = "fifo", .spares = spares, .timing = timing};
  terms.failures = *or_stop(bench.catalog().require<FailureSpec>("llama3"));
  const Timed timed = play(*cluster, trace, options, terms);
  return 1 - job.run.count_seconds() / timed.run.summary.avg_jct_s;
}

void bench_large_job(Bench& bench) {
  const FailureProfile& profile = *or_stop(bench.catalog().require<FailureProfile>("llama3"));
  const auto closed = [&](Duration restart) {
    GoodputInputs inputs;
    inputs.mean_time_to_failure = or_stop(mean_time_to_failure(profile, 2048));
    inputs.checkpoint.stall = inputs.checkpoint.persist = Seconds{0.5};
    inputs.detect = Seconds{30};
    inputs.restart = Seconds(restart.count_seconds());
    inputs.step = Seconds{5};
    return 1 - or_stop(goodput_of(inputs)).effective;
  };
  // Without spares, a node that was not kept ready stands in; the nodes that the job keeps count as
  // such nodes too.
  print_figure({"twin", "16,384 accelerators, cold restarts: share of time lost",
                lost_share(bench, {.warm_restart = Duration::max()}, 0), "", 0.05, "closed form",
                closed(Duration::seconds(300))});
  print_figure({"twin", "the same, cold where no spare stands in", lost_share(bench, {}, 0), "",
                0.05, "closed form", closed(Duration::seconds(300))});
  print_figure({"twin", "the same with 2 % warm spares", lost_share(bench, {}, 41), "", 0.03,
                "closed form", closed(Duration::seconds(60))});
}

int run(int argc, char** argv) {
  std::string traces;
  std::string_view only;
  std::string policy = "hardware-aware";
  std::optional<std::uint32_t> days;
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::string_view(argv[i]) == "--traces") traces = argv[i + 1];
    if (std::string_view(argv[i]) == "--policy") policy = argv[i + 1];
    if (std::string_view(argv[i]) == "--only") only = argv[i + 1];
    if (std::string_view(argv[i]) == "--days") {
      days = static_cast<std::uint32_t>(std::strtoul(argv[i + 1], nullptr, 10));
    }
  }
  Bench bench;
  const auto wanted = [only](std::string_view name) { return only.empty() || only == name; };
  if (wanted("fifo")) bench_fifo(bench, traces);
  if (wanted("day")) bench_day(bench);
  if (wanted("year")) bench_year(bench, policy, days);
  if (wanted("large-job")) bench_large_job(bench);
  if (wanted("million")) bench_million(bench);
  return 0;
}

}  // namespace
}  // namespace orrery

int main(int argc, char** argv) { return orrery::run(argc, argv); }
