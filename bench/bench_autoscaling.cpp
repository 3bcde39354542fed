// bench_autoscaling: what a service costs that the autoscaler scales, beside rules of others, at
// equal latencies.
//
//   bench_autoscaling --traces DIR [--days N] [--swept N] [--cold-start SECONDS]... [--half first]
//       [--only react|capacity|mixed|azure|m-large]... [--orders FILE]
//       [--rules WORD]... [--still N]
//
// DIR holds serving/servegen_m-large_rate_10min.csv and serving/azure_llm_2023_code.csv.gz. Days of
// ServeGen's rates, a twentieth of them, are drawn one a seed; of Azure's requests eight copies
// that begin at drawn places run at the same time. Each rule's constants are swept on the first
// half of a trace, and the cheapest of those that keep 99 % within the targets (else the one that
// keeps most) is played on the second. The same traces are played by all rules. `--half first`
// leaves the second half alone. A rule that knows all requests is played beside them, as a bound.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>

#include "base/format/document.hpp"
#include "base/numbers/rng.hpp"
#include "bench/figure.hpp"
#include "bench/serving/scale_rules.hpp"
#include "bench/serving/scale_trial.hpp"
#include "serving/scaling/replica_capacity.hpp"
#include "twin/gateways/modelled_gateway.hpp"
#include "twin/serving/demand_scaler.hpp"
#include "workload/requests/request_reader.hpp"

namespace orrery {
namespace {

constexpr double kPromise = 0.99;
constexpr std::uint32_t kReplicasMax = 32;
constexpr RequestTargets kTargets{.ttft_s = 3, .tpot_s = 0.1};

/// Four 80 GB accelerators with a model of 70 billion parameters, in round numbers.
constexpr EngineStepCost kCost = {.step_s = 18e-3,
                                  .sequence_s = 8e-5,
                                  .context_token_s = 2e-8,
                                  .prompt_token_s = 1e-4,
                                  .prompt_pair_s = 5e-10};

struct Asked {
  std::string traces;
  std::uint64_t days = 5;
  std::size_t swept = 2;
  std::vector<double> cold_starts;
  std::string half;
  std::string orders;  ///< a file for those of the first rule on the second half
  std::vector<std::string> only;
  std::vector<std::string> rules;  ///< words of their names; none: all rules
  std::uint32_t still = 0;         ///< least replicas of either half; 0: to be found

  [[nodiscard]] std::vector<ScaleRule> chosen(std::vector<ScaleRule> all) const {
    std::erase_if(all, [this](const ScaleRule& rule) {
      return !rules.empty() && std::ranges::none_of(rules, [&](const std::string& word) {
        return rule.name.find(word) != std::string::npos;
      });
    });
    return all;
  }
  [[nodiscard]] bool wants(std::string_view part) const {
    return only.empty() || std::ranges::find(only, part) != only.end();
  }
};

ServiceSetup setup_of(std::uint32_t replicas, double cold_start_s) {
  ServiceSetup setup;
  setup.groups.push_back({.name = "bench",
                          .count = replicas,
                          .rules = {.sequences_max = 128, .step_tokens = 2048, .kv_blocks = 40'000},
                          .cost = kCost,
                          .usd_h = 10,
                          .cold_start = Duration::from_seconds(cold_start_s)});
  setup.targets = kTargets;
  return setup;
}

ScaleRule ours(double quantile) {
  return {fmt::format("orrery, quantile {}", quantile),
          [quantile](const ServiceSetup& setup, const RequestTrace&) {
            return demand_scaler(setup.groups,
                                 {.terms = {.max = kReplicasMax, .quantile = quantile},
                                  .ttft_s = setup.targets.ttft_s,
                                  .tpot_s = setup.targets.tpot_s});
          }};
}

std::vector<ScaleRule> our_rules() {
  std::vector<ScaleRule> rules;
  for (const double quantile : {0.5, 0.65, 0.8, 0.9, 0.95}) rules.push_back(ours(quantile));
  return rules;
}

std::vector<ScaleRule> pod_rules(const std::vector<double>& targets) {
  std::vector<ScaleRule> rules;
  for (const double target : targets) {
    rules.push_back({fmt::format("HPA, {} requests a replica", target),
                     [target](const ServiceSetup&, const RequestTrace&) {
                       return ServiceScaler(PodAutoscaler(target, kReplicasMax));
                     }});
  }
  return rules;
}

std::vector<ScaleRule> saturation_rules() {
  std::vector<ScaleRule> rules;
  for (const double threshold : {0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.8}) {
    const SaturationTerms terms{.kv_threshold = threshold};
    rules.push_back({fmt::format("WVA, {} of the cache", threshold),
                     [terms](const ServiceSetup& setup, const RequestTrace&) {
                       return ServiceScaler(
                           SaturationAnalyzer(terms, setup.groups.front(), kReplicasMax));
                     }});
  }
  return rules;
}

std::vector<ScaleRule> planner_rules() {
  std::vector<ScaleRule> rules;
  for (const LoadPredictor predictor : {LoadPredictor::kConstant, LoadPredictor::kTrend}) {
    for (const int interval : {60, 180}) {
      for (const double share : {0.4, 0.8}) {
        const PlannerTerms terms{.interval = Duration::seconds(interval),
                                 .predictor = predictor,
                                 .tpot_s = share * kTargets.tpot_s};
        rules.push_back({fmt::format("planner, {}, {} s, {:.0f} ms a token",
                                     predictor == LoadPredictor::kTrend ? "trend" : "constant",
                                     interval, terms.tpot_s * 1e3),
                         [terms](const ServiceSetup& setup, const RequestTrace&) {
                           return ServiceScaler(
                               ThroughputPlanner(terms, setup.groups.front(), kReplicasMax));
                         }});
      }
    }
  }
  return rules;
}

/// The rule of one who knows all requests, as a bound: as many replicas as the busiest minute needs
/// of those that begin before a replica ordered now would be replaced by one ordered a minute
/// later.
std::vector<ScaleRule> foreseeing_rules() {
  std::vector<ScaleRule> rules;
  for (const double requests_s : {3.0, 3.5, 4.0, 4.5, 5.0}) {
    rules.push_back({fmt::format("foresight, {} requests a second", requests_s),
                     [requests_s](const ServiceSetup& setup, const RequestTrace& trace) {
                       return ServiceScaler(ForeseeingScaler(minute_rates(trace),
                                                             setup.groups.front().cold_start,
                                                             requests_s, kReplicasMax));
                     }});
  }
  return rules;
}

/// The traces of a half, one a seed.
using DrawHalf = std::function<std::vector<RequestTrace>(TraceHalf)>;

struct Workload {
  std::string name;
  DrawHalf draw;
  std::vector<double> pod_targets;  ///< that are swept
};

DrawHalf servegen_days(const std::string& path, std::uint64_t days) {
  constexpr double kShare = 0.05;
  constexpr std::size_t kWindows = 144;  // of ten minutes
  const std::string bytes = must(read_file(path, 1 << 26));
  return [rates = must(read_rates(bytes, path)), days](TraceHalf half) {
    std::vector<RequestTrace> traces;
    const std::size_t first = half == TraceHalf::kFirst ? 0 : rates.size() / 2;
    for (std::uint64_t day = 0; day < days; ++day) {
      std::vector<RateWindow> windows(
          rates.begin() + static_cast<std::ptrdiff_t>(first + day * kWindows),
          rates.begin() + static_cast<std::ptrdiff_t>(first + (day + 1) * kWindows));
      const Duration begin = windows.front().begin;
      for (RateWindow& each : windows) {
        each.begin = each.begin - begin;
        each.rate *= kShare;
      }
      RequestSpec spec;
      spec.span = Seconds(86'400);
      traces.push_back(must(generate_requests(spec, std::move(windows), day + 1)));
    }
    return traces;
  };
}

DrawHalf azure_copies(const std::string& path, std::uint64_t seeds) {
  constexpr int kCopies = 8;
  return [all = must(load_requests(path, {})), seeds](TraceHalf half) {
    RequestTrace part = all;
    keep_half(part, half);
    std::vector<RequestTrace> traces;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      Rng rng = Rng::stream(seed, "copies");
      RequestTrace trace = part;
      trace.requests.clear();
      for (int copy = 0; copy < kCopies; ++copy) {
        const auto span = static_cast<std::uint64_t>(part.span.count_ns());
        const auto later = Duration::nanoseconds(static_cast<std::int64_t>(rng.below(span)));
        for (TraceRequest each : part.requests) {
          each.arrival = each.arrival + later;
          if (each.arrival >= part.span) each.arrival = each.arrival - part.span;
          trace.requests.push_back(each);
        }
      }
      std::ranges::stable_sort(trace.requests, {}, &TraceRequest::arrival);
      traces.push_back(std::move(trace));
    }
    return traces;
  };
}

Trials play(std::span<const RequestTrace> traces, const ServiceSetup& setup,
            const ScaleRule& rule) {
  Trials trials{.name = rule.name, .all = {}};
  for (const RequestTrace& trace : traces) trials.all.push_back(play_trial(trace, setup, rule));
  fmt::print(stderr, "  {:44} {:8.3f} % within, {:9.1f} $, {:.1f} % busy, {} orders, {} reversed\n",
             trials.name, 100 * trials.attained(), trials.usd(), 100 * trials.busy(),
             trials.orders(), trials.reversed());
  return trials;
}

/// The least number of replicas that keeps the promise.
std::uint32_t least_static(std::span<const RequestTrace> traces) {
  std::uint32_t low = 1;
  std::uint32_t high = kReplicasMax;
  while (low < high) {
    const std::uint32_t middle = (low + high) / 2;
    const ScaleRule rule{fmt::format("{} replicas", middle), nullptr};
    if (play(traces, setup_of(middle, 0), rule).attained() >= kPromise) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

/// The rule that is cheapest of those that keep the promise; else the one that keeps most.
ScaleRule best_of(std::span<const RequestTrace> traces, const ServiceSetup& setup,
                  const std::vector<ScaleRule>& rules) {
  std::optional<Trials> best;
  const ScaleRule* chosen = nullptr;
  for (const ScaleRule& rule : rules) {
    Trials found = play(traces, setup, rule);
    const bool keeps = found.attained() >= kPromise;
    const bool kept = best && best->attained() >= kPromise;
    const bool better = !best || (keeps && !kept) ||
                        (keeps == kept &&
                         (keeps ? found.usd() < best->usd() : found.attained() > best->attained()));
    if (!better) continue;
    best = std::move(found);
    chosen = &rule;
  }
  fmt::print(stderr, "  -> {}\n", chosen->name);
  return *chosen;
}

void compare(const std::string& what, const Trials& ours, const Trials& peer) {
  std::vector<double> dearer;
  for (std::size_t i = 0; i < ours.all.size(); ++i) {
    dearer.push_back(ours.all[i].figures.replicas.usd / peer.all[i].figures.replicas.usd);
  }
  const PairedMean ratio = paired_mean(dearer);
  print_figure({.bench = "autoscaling",
                .name = fmt::format("{}: dollars, {:.2f} % within ({:.2f} +- {:.2f} of the peer's)",
                                    what, 100 * ours.attained(), ratio.mean, ratio.width),
                .value = ours.usd(),
                .unit = "$",
                .target = 0.8 * peer.usd(),
                .peer = fmt::format("{}, {:.2f} % within", peer.name, 100 * peer.attained()),
                .peer_value = peer.usd()});
}

/// A line for each order: the trace, seconds of it, replicas.
void write_orders(const std::string& path, const Trials& trials) {
  std::string lines = "day,at_s,replicas\n";
  for (std::size_t day = 0; day < trials.all.size(); ++day) {
    for (const NotedOrder& each : trials.all[day].orders) {
      lines += fmt::format("{},{},{}\n", day, each.at.count_seconds(), each.after);
    }
  }
  std::ofstream(path) << lines;
}

void compare_rules(const Workload& workload, const Asked& asked) {
  const std::string& name = workload.name;
  struct Chosen {
    double cold_start_s = 0;
    std::vector<ScaleRule> rules;
  };
  std::vector<Chosen> chosen;
  fmt::print(stderr, "{}, first half:\n", name);
  std::uint32_t still = 0;
  {
    const std::vector<RequestTrace> traces = workload.draw(TraceHalf::kFirst);
    const auto some = std::span(traces).first(std::min(asked.swept, traces.size()));
    still = asked.still > 0 ? asked.still : least_static(traces);
    for (const double cold_start_s : asked.cold_starts) {
      fmt::print(stderr, " starts of {} s\n", cold_start_s);
      const ServiceSetup setup = setup_of(still, cold_start_s);
      Chosen& each = chosen.emplace_back();
      each.cold_start_s = cold_start_s;
      for (const auto& rules : {our_rules(), pod_rules(workload.pod_targets), saturation_rules(),
                                planner_rules(), foreseeing_rules()}) {
        const std::vector<ScaleRule> wanted = asked.chosen(rules);
        if (!wanted.empty()) each.rules.push_back(best_of(some, setup, wanted));
      }
    }
  }
  if (asked.half == "first") return;
  fmt::print(stderr, "{}, second half:\n", name);
  const std::vector<RequestTrace> traces = workload.draw(TraceHalf::kSecond);
  const Trials fixed =
      play(traces, setup_of(still, 0), {fmt::format("{} replicas, of the first half", still), {}});
  const std::uint32_t known = asked.still > 0 ? asked.still : least_static(traces);
  const Trials oracle =
      play(traces, setup_of(known, 0), {fmt::format("{} replicas, of this half", known), {}});
  for (const Chosen& each : chosen) {
    const std::string what = fmt::format("{}, starts of {} s", name, each.cold_start_s);
    const ServiceSetup setup = setup_of(still, each.cold_start_s);
    fmt::print(stderr, " starts of {} s\n", each.cold_start_s);
    const Trials mine = play(traces, setup, each.rules.front());
    if (!asked.orders.empty()) write_orders(asked.orders, mine);
    compare(what, mine, fixed);
    compare(what, mine, oracle);
    for (std::size_t i = 1; i < each.rules.size(); ++i) {
      compare(what, mine, play(traces, setup, each.rules[i]));
    }
  }
}

/// Seconds from a threefold step of the rate to an order, at ten phases of a tick.
void react() {
  constexpr double kRate = 4;
  std::vector<double> seconds;
  std::uint32_t reversed = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const Duration step =
        Duration::seconds(1200) + Duration::milliseconds(500) * static_cast<std::int64_t>(seed);
    RequestSpec spec;
    spec.span = Seconds(1800);
    const RequestTrace trace =
        must(generate_requests(spec, {{{}, kRate}, {step, 3 * kRate}}, seed));
    const Trial trial = play_trial(trace, setup_of(2, 60), ours(0.95));
    const std::optional<Duration> order = trial.more_after(step);
    seconds.push_back(order ? (*order - step).count_seconds() : 600);
    reversed += trial.reversed();
    for (const NotedOrder& each : trial.orders) {
      fmt::print(stderr, "  step {}: {} to {} replicas {:.1f} s after it\n", seed, each.before,
                 each.after, (each.at - step).count_seconds());
    }
  }
  std::ranges::sort(seconds);
  for (const auto& [name, value] : {std::pair("median", seconds[4]), {"longest", seconds[9]}}) {
    print_figure({.bench = "autoscaling",
                  .name = fmt::format("three times the requests to an order, {} of ten", name),
                  .value = value,
                  .unit = "s",
                  .target = 10});
  }
  print_figure({.bench = "autoscaling",
                .name = "orders reversed within a minute, of ten such steps",
                .value = static_cast<double>(reversed),
                .unit = "orders",
                .target = 0});
}

/// What four replicas serve within the targets, as a share of what their capacity says.
void check_capacity() {
  constexpr std::uint32_t kReplicas = 4;
  const ServiceSetup setup = setup_of(kReplicas, 60);
  const ReplicaGroup& group = setup.groups.front();
  const RequestShape shape{.prompt = 1000 * std::exp(0.5), .output = 200 * std::exp(0.32)};
  const ReplicaCapacity capacity =
      replica_capacity({.cost = engine_step_cost_of(pace_of(group), group.rules.sequences_max),
                        .slots = group.rules.sequences_max,
                        .shape = shape,
                        .ttft_s = kTargets.ttft_s,
                        .tpot_s = kTargets.tpot_s});
  const double said = kReplicas * requests_s_of(capacity, shape);
  double kept = 0;
  for (double share = 0.5; share < 2.5; share += 0.1) {
    RequestSpec spec;
    spec.span = Seconds(3600);
    spec.rate = share * said;
    const RequestTrace trace = must(generate_requests(spec, {}, 1));
    const Trials found =
        play({&trace, 1}, setup, {fmt::format("{:.1f} of what capacity says", share), nullptr});
    if (found.attained() < kPromise) break;
    kept = share;
  }
  print_figure({.bench = "autoscaling",
                .name = fmt::format("load of which four replicas keep 99 %, of the {:.1f} requests "
                                    "a second that their capacity says",
                                    said),
                .value = kept,
                .unit = "share"});
}

/// The model of kCost on two kinds of machines: four H100 SXM, and four H100 PCIe by the ratios of
/// their peak rates and bandwidths; typical prices and powers of the catalogue.
std::vector<ReplicaGroup> two_kinds() {
  constexpr double kSlowerRate = 989.0 / 756.5;
  constexpr double kSlowerMemory = 3.35 / 2.0;
  ReplicaGroup sxm = setup_of(1, 60).groups.front();
  sxm.name = "h100-sxm";
  sxm.most = 8;
  sxm.usd_h = 4 * 2.95;
  sxm.watts = 4 * 700;
  sxm.watts_idle = 4 * 75;
  ReplicaGroup pcie = sxm;
  pcie.name = "h100-pcie";
  pcie.count = 1;
  pcie.cost.step_s *= kSlowerMemory;
  pcie.cost.sequence_s *= kSlowerMemory;
  pcie.cost.context_token_s *= kSlowerMemory;
  pcie.cost.prompt_token_s *= kSlowerRate;
  pcie.cost.prompt_pair_s *= kSlowerRate;
  pcie.usd_h = 4 * 1.9;
  pcie.watts = 4 * 350;
  pcie.watts_idle = 4 * 45;
  return {sxm, pcie};
}

/// What a weight of energy saves on two kinds of machines, at equal latencies.
void mixed(const std::string& servegen, const Asked& asked) {
  const DrawHalf days = servegen_days(servegen, asked.days);
  const std::vector<ReplicaGroup> kinds = two_kinds();
  const auto rule = [](double usd_per_kwh) {
    return ScaleRule{fmt::format("{} $ a kWh", usd_per_kwh),
                     [usd_per_kwh](const ServiceSetup& s, const RequestTrace&) {
                       constexpr double kJoulesOfKwh = 3.6e6;
                       return demand_scaler(
                           s.groups, {.terms = {.max = kReplicasMax},
                                      .ttft_s = s.targets.ttft_s,
                                      .tpot_s = s.targets.tpot_s,
                                      .power = {.usd_per_joule = usd_per_kwh / kJoulesOfKwh}});
                     }};
  };
  ServiceSetup setup;
  setup.groups = kinds;
  setup.targets = kTargets;
  const std::vector<RequestTrace> traces = days(TraceHalf::kSecond);
  const Trials dollars = play(traces, setup, rule(0));
  for (const double usd_per_kwh : {0.1, 0.3, 1.0, 3.0}) {
    const Trials both = play(traces, setup, rule(usd_per_kwh));
    std::vector<double> joules;
    std::vector<double> usd;
    for (std::size_t i = 0; i < both.all.size(); ++i) {
      const ReplicaFigures& mine = both.all[i].figures.replicas;
      const ReplicaFigures& without = dollars.all[i].figures.replicas;
      joules.push_back(mine.joules / without.joules);
      usd.push_back(mine.usd / without.usd);
    }
    const PairedMean j = paired_mean(joules);
    const PairedMean d = paired_mean(usd);
    print_figure(
        {.bench = "autoscaling",
         .name = fmt::format("two kinds of machines, energy at {} $ a kWh: joules, of those "
                             "without a weight (dollars {:.3f} +- {:.3f}, joules +- {:.3f}, "
                             "{:.2f} % within; without {:.2f} %)",
                             usd_per_kwh, d.mean, d.width, j.width, 100 * both.attained(),
                             100 * dollars.attained()),
         .value = j.mean,
         .unit = "share",
         .target = 0.85});
  }
}

void bench(const Asked& asked) {
  if (asked.wants("react")) react();
  if (asked.wants("capacity")) check_capacity();
  const std::string folder = asked.traces + "/serving/";
  const std::string servegen = folder + "servegen_m-large_rate_10min.csv";
  const std::string azure = folder + "azure_llm_2023_code.csv.gz";
  for (const std::string& path : {servegen, azure}) {
    if (std::filesystem::exists(path)) continue;
    fmt::print(stderr, "SKIPPED: no {} (--traces DIR)\n", path);
    return;
  }
  if (asked.wants("mixed")) mixed(servegen, asked);
  if (asked.wants("azure")) {
    compare_rules({"Azure's code", azure_copies(azure, 10), {1, 1.5, 2, 3, 4, 6, 8, 12}}, asked);
  }
  if (asked.wants("m-large")) {
    compare_rules({"ServeGen's m-large",
                   servegen_days(servegen, asked.days),
                   {12, 20, 25, 30, 35, 40, 45, 50, 60, 80}},
                  asked);
  }
}

}  // namespace
}  // namespace orrery

int main(int count, char** arguments) {
  orrery::Asked asked;
  CLI::App app("What scaled services cost");
  app.add_option("--traces", asked.traces, "folder of public traces");
  app.add_option("--days", asked.days, "days of each half of ServeGen's")->check(CLI::Range(2, 7));
  app.add_option("--swept", asked.swept, "traces of a first half on which constants are swept")
      ->check(CLI::Range(1, 10));
  app.add_option("--cold-start", asked.cold_starts, "seconds; default: 20, 60 and 180");
  app.add_option("--rules", asked.rules, "words of the names of rules; default: all");
  app.add_option("--still", asked.still, "replicas that keep 99 %; default: they are found");
  app.add_option("--half", asked.half, "first: no second halves")->check(CLI::IsMember({"first"}));
  app.add_option("--only", asked.only, "parts; default: all")
      ->check(CLI::IsMember({"react", "capacity", "mixed", "azure", "m-large"}));
  app.add_option("--orders", asked.orders, "file for the orders of ours on second halves");
  CLI11_PARSE(app, count, arguments);
  if (asked.cold_starts.empty()) asked.cold_starts = {20, 60, 180};
  orrery::bench(asked);
  return 0;
}
