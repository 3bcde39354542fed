// twin/figures/report_test.hpp - a made-up year of a fleet under several policies, for the tests of
// reports.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include <fmt/format.h>

#include "base/numbers/distribution.hpp"
#include "base/numbers/math.hpp"
#include "base/numbers/rng.hpp"
#include "twin/figures/report_data.hpp"

namespace orrery {

/// Sizes of the made-up report.
struct MadeUpSize {
  std::size_t policies = 3;
  std::size_t samples = 8760;
  std::size_t jobs = 20'000;
  Duration window = Duration::hours(24) * 365;
};

inline constexpr double kMadeUpDevices[] = {4096, 2048, 768};

/// Waits and run times spread over decades.
inline Lognormal skewed(double median, double sigma) {
  return {.mu = math::log(median), .sigma = sigma};
}

inline double wave(double t) {
  const double part = t - std::floor(t);
  return part < 0.5 ? 1 - 8 * (part - 0.25) * (part - 0.25) * 2
                    : 8 * (part - 0.75) * (part - 0.75) * 2 - 1;
}

inline FleetSamples made_up_samples(const MadeUpSize& size, Instant from, Rng& rng) {
  FleetSamples samples;
  samples.busy.resize(3);
  double load = 0.7;
  for (std::size_t i = 0; i < size.samples; ++i) {
    const auto part = static_cast<double>(i) / static_cast<double>(size.samples);
    const Duration since = Duration::from_seconds(size.window.count_seconds() * part);
    const double days = since.count_seconds() / 86400;
    load = std::clamp(load + (rng.uniform() - 0.49) * 0.05, 0.35, 0.97);
    const double down = std::floor(12 + 40 * (rng.uniform() > 0.995 ? 8 : rng.uniform() * 0.4));
    double busy = 0;
    double devices = 0;
    for (std::size_t type = 0; type < 3; ++type) {
      const double use = std::clamp(load + 0.04 * wave(days) - 0.05 * double(type), 0.0, 0.99);
      samples.busy[type].push_back(std::floor((kMadeUpDevices[type] - down / 3) * use));
      busy += samples.busy[type].back();
      devices += kMadeUpDevices[type];
    }
    samples.at.push_back(from + since);
    samples.down.push_back(down);
    samples.free.push_back(std::max(0.0, devices - busy - down));
    samples.power_w.push_back(9e5 + busy * (520 + 60 * rng.uniform()));
    samples.cap_w.push_back(5e6);
    samples.queue.push_back(std::floor(math::exp(load * 7.5) * (0.6 + 0.5 * rng.uniform())));
    samples.usd_per_mwh.push_back(70 + 35 * wave(days) + 25 * (rng.uniform() - 0.5) -
                                  (rng.uniform() > 0.99 ? 120 : 0));
    samples.g_per_kwh.push_back(320 - 140 * wave(days + 0.2) + 30 * rng.uniform());
  }
  return samples;
}

inline std::vector<JobClass> made_up_classes(const MadeUpSize& size, double slow, Rng& rng) {
  std::vector<JobClass> classes = {{"1 to 8 devices"}, {"9 to 64"}, {"65 to 512"}, {"serving"}};
  for (std::size_t k = 0; k < classes.size(); ++k) {
    for (std::size_t i = 0; i < size.jobs / classes.size(); ++i) {
      const double scale = slow * (k == 3 ? 0.1 : 1 + 4.0 * double(k));
      const double wait = rng.uniform() < 0.3 ? 0 : skewed(240 * scale, 1.9).sample(rng);
      classes[k].queueing_s.push_back(wait);
      classes[k].jct_s.push_back(wait + skewed(1800 * (1 + double(k) * 2), 1.5).sample(rng));
    }
    std::ranges::sort(classes[k].queueing_s);
    std::ranges::sort(classes[k].jct_s);
  }
  return classes;
}

inline std::vector<UseHours> made_up_use(double hours, double slow) {
  std::vector<UseHours> use(3);
  constexpr UseHours kShares = {0,    .021, .012, .019, .003, .004, .002, .09,  .061,
                                .034, .028, .012, .009, .017, .006, .002, .011, .008};
  for (std::size_t type = 0; type < 3; ++type) {
    const double all = kMadeUpDevices[type] * hours;
    double rest = all;
    for (std::size_t k = 1; k < kDeviceUses; ++k) {
      use[type][k] = all * kShares[k] * (0.6 + 0.4 * slow) * (1 + 0.2 * double(type * (k % 3)));
      rest -= use[type][k];
    }
    use[type][0] = rest;
  }
  return use;
}

inline RowMap made_up_map(Rng& rng) {
  RowMap map{.columns = 200};
  for (int row = 0; row < 60; ++row) {
    map.rows.push_back(fmt::format("hall-{}/pod-{:02}", row / 20 + 1, row % 20 + 1));
    double share = rng.uniform();
    for (std::size_t column = 0; column < map.columns; ++column) {
      share = std::clamp(share + (rng.uniform() - 0.52) * 0.3, 0.0, 1.0);
      map.shares.push_back(rng.uniform() > 0.995 ? std::numeric_limits<double>::quiet_NaN()
                                                 : share);
    }
  }
  return map;
}

inline std::vector<FailureRecord> made_up_failures(const MadeUpSize& size, Instant from, Rng& rng) {
  constexpr const char* kParts[] = {
      "accelerator", "accelerator memory", "host", "network card", "switch", "cooling"};
  std::vector<FailureRecord> failures;
  for (int i = 0; i < 900; ++i) {
    const auto part = static_cast<std::size_t>(rng.uniform() * rng.uniform() * 6);
    const auto in = Duration::from_seconds(size.window.count_seconds() * rng.uniform());
    failures.push_back(
        {.at = from + in,
         .component = kParts[part],
         .detection = Duration::from_seconds(skewed(20, 1.2).sample(rng)),
         .repair = Duration::from_seconds(skewed(3600 * double(part + 1), 1.3).sample(rng)),
         .jobs_hit = static_cast<std::uint32_t>(rng.uniform() * (part == 4 ? 14 : 2))});
  }
  return failures;
}

inline GanttChart made_up_gantt(const MadeUpSize& size, Instant from, Rng& rng) {
  GanttChart chart{.grouped_by = "tenant", .groups = {"research", "speech & <audio>"}};
  for (int row = 0; row < 32; ++row) chart.rows.push_back({fmt::format("rack-{}", row + 1), 64});
  const std::size_t bars = std::min<std::size_t>(size.jobs, 1500);
  for (std::size_t i = 0; i < bars; ++i) {
    const double begin = static_cast<double>(i) / static_cast<double>(bars);
    const double length = 0.05 * rng.uniform();
    chart.bars.push_back(
        {.job = fmt::format("job-{}", i),
         .row = static_cast<std::uint32_t>(rng.uniform() * 32),
         .group = static_cast<std::uint32_t>(i % 2),
         .devices = std::floor(1 + rng.uniform() * 40),
         .from = from + Duration::from_seconds(size.window.count_seconds() * begin),
         .to = from + Duration::from_seconds(size.window.count_seconds() * (begin + length)),
         .fault = i % 40 == 0});
  }
  chart.left_out = 17;
  return chart;
}

inline void add_people(PolicyReport& policy, double hours) {
  constexpr const char* kTenants[] = {"research",         "products", "vision",
                                      "speech & <audio>", "platform", "guests"};
  for (int i = 0; i < 6; ++i) {
    policy.tenants.push_back({.name = kTenants[i], .used_hours = hours * (1600.0 - 250 * i)});
    if (i < 5) policy.tenants.back().guaranteed_hours = hours * (1300.0 - 190 * i + 80 * (i % 2));
  }
  for (int i = 0; i < 12; ++i) {
    policy.slowest.push_back(
        {.id = fmt::format("job-{}", 48211 + 977 * i),
         .tenant = kTenants[i % 6],
         .kind = i % 3 == 0 ? "pre-training" : "fine-tuning",
         .devices = 512u >> (i % 4),
         .queueing = Duration::hours(90 - 5 * i),
         .jct = Duration::hours(260 - 11 * i),
         .reason = i % 2 == 0 ? "enough devices were free, but not within one pod: 61 nodes free "
                                "in 9 pods, 64 wanted in one"
                              : "its tenant had used its guarantee and others had not",
         .course = {"2017-10-02T00:00:00Z  submitted",
                    "2017-10-05T18:00:00Z  starts: 512 x h100-sxm"}});
  }
}

inline PolicySummary made_up_summary(const MadeUpSize& size, double slow) {
  return {.jobs = size.jobs,
          .avg_jct_s = 14'200 * slow,
          .avg_wait_s = 5'100 * slow * slow,
          .avg_queueing_s = 6'300 * slow * slow,
          .p99_queueing_s = 41'000 * slow,
          .p50_jct_s = 3'300 * slow,
          .p99_jct_s = 190'000 * slow,
          .makespan_s = size.window.count_seconds() * (1 + 0.01 * slow),
          .utilization = 0.84 - 0.05 * slow,
          .goodput = 0.78 - 0.06 * slow,
          .energy_kwh = 4.1e7 * (1 + 0.02 * slow),
          .cost_usd = 8.3e7 * (1 + 0.03 * slow),
          .co2_kg = 1.3e7 * (1 + 0.02 * slow),
          .preemptions = static_cast<std::uint64_t>(1200 * slow),
          .faults = 900,
          .never = 3,
          .oversized = 17,
          .events = size.jobs * 6,
          .wall_s = 41.5 * slow,
          .history_hash = "8f3a6c11d07be259"};
}

/// The first policy is the oracle; the second beats the others. The ends of names need escapes.
inline ReportData made_up_report(const MadeUpSize& size) {
  constexpr const char* kNames[] = {"srtf-oracle", "orrery", "fifo", "backfill", "fair <share>"};
  ReportData data{.title = "A year on three kinds of accelerators",
                  .fleet = "examples/three-kinds.yaml: 6,912 accelerators in 3 halls",
                  .trace = fmt::format("made up, {} jobs", size.jobs),
                  .from = Instant::from_ns(1'506'816'000'000'000'000),
                  .time = TimeAxis::kCalendar,
                  .seed = 42,
                  .failures = "large-cluster",
                  .command =
                      "orrery simulate --fleet three-kinds.yaml --trace year.csv --policy "
                      "srtf,orrery,fifo --failures large-cluster --seed 42 --out report",
                  .notes = {"run times of the trace are of its own accelerators & scaled by peak"},
                  .types = {"h100-sxm", "a100-sxm-80gb", "mi300x"}};
  data.to = data.from + size.window;
  const double hours = size.window.count_seconds() / 3600;
  for (std::size_t k = 0; k < size.policies; ++k) {
    Rng rng(7 + k);
    const double slow = 0.8 + 0.35 * static_cast<double>(k);
    PolicyReport policy{.name = kNames[k % 5],
                        .information = k == 0   ? Information::kOracle
                                       : k == 2 ? Information::kBlind
                                                : Information::kEstimate,
                        .summary = made_up_summary(size, slow)};
    policy.samples = made_up_samples(size, data.from, rng);
    policy.classes = made_up_classes(size, slow * slow, rng);
    policy.use = made_up_use(hours, slow);
    policy.failures = made_up_failures(size, data.from, rng);
    policy.fragmentation = made_up_map(rng);
    policy.in_use = made_up_map(rng);
    policy.power = made_up_map(rng);
    policy.gantt = made_up_gantt(size, data.from, rng);
    add_people(policy, hours);
    data.policies.push_back(std::move(policy));
  }
  return data;
}

}  // namespace orrery
