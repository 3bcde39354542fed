// bench/bench_fragmentation.cpp - how much of a cluster pods with parts of a GPU can fill.
//
//   bench_fragmentation --traces DIR     DIR holds cluster/openb_*.csv.gz
//
// Ten draws of arrivals; no departures, no migration; a pod that fits nowhere is lost. The figure
// is GPUs in use over capacity when the arrived pods ask for as many GPUs as there are. All rules
// see the same arrivals and the same order of nodes.
#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string_view>

#include "bench/figure.hpp"
#include "bench/openb_trace.hpp"
#include "scheduler/request/share_fit.hpp"

namespace orrery {
namespace {

constexpr std::array<std::uint64_t, 10> kSeeds = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};

/// A rule, and the mean its authors' program reaches (analysis_allo_discrete.csv of
/// hkust-adsl/kubernetes-scheduler-simulator, openb_pod_list_default, ten seeds, 100 % arrived).
struct Contender {
  std::string_view name;
  std::optional<ShareRule> rule;  ///< none: at random
  std::optional<double> published;
  std::size_t known = 0;  ///< pods of another draw that make the distribution; 0: the whole list
};
constexpr std::array<Contender, 5> kContenders = {
    {{"random", std::nullopt, 86.3},
     {"best fit", ShareRule::kBestFit, 92.9},
     {"FGD", ShareRule::kFragmentation, 95.2},
     {"worth", ShareRule::kWorth, std::nullopt},
     {"worth, knowing 500 pods of another draw", ShareRule::kWorth, std::nullopt, 500}}};
constexpr std::uint64_t kOtherDraw = 1000;  // added to a seed: a draw that is not played

/// Any node that fits, any of its devices that fit.
std::optional<ShareChoice> random_choice(const ShareFit& fit, const ShareRequest& pod, Rng& rng) {
  std::vector<std::size_t> nodes;
  for (std::size_t i = 0; i < fit.nodes().size(); ++i) {
    if (fits(fit.nodes()[i], pod)) nodes.push_back(i);
  }
  if (nodes.empty()) return std::nullopt;
  const std::size_t chosen = nodes[rng.below(nodes.size())];
  const ShareNode& node = fit.nodes()[chosen];
  ShareDevices devices = tightest_devices(node, pod);
  if (pod.is_part()) {
    std::vector<int> holding;
    for (int i = 0; i < node.devices; ++i) {
      if (node.device_free[static_cast<std::size_t>(i)] >= pod.thousandths) holding.push_back(i);
    }
    devices = static_cast<ShareDevices>(1U << holding[rng.below(holding.size())]);
  }
  return ShareChoice{.node = ShareNodeId::at(chosen), .devices = devices};
}

TypicalRequests typical_for(const OpenbTrace& trace, const Contender& contender,
                            std::uint64_t seed) {
  if (contender.known == 0) return TypicalRequests::make(trace.pods);
  const std::vector<ShareRequest> other = draw_arrivals(trace, seed + kOtherDraw);
  return TypicalRequests::make(std::span(other).first(contender.known));
}

struct Outcome {
  double allocated = 0;  ///< per cent of the capacity, mean over the draws
  double lost_without_gpu = 0;
  double decision_us = 0;
};

/// One draw. The clock sees the decisions only.
Outcome play(const OpenbTrace& trace, const Contender& contender, std::uint64_t seed) {
  std::vector<ShareNode> nodes = trace.nodes;
  shuffle(nodes, Rng::stream(seed, "openb nodes"));
  const std::vector<ShareRequest> arrivals = draw_arrivals(trace, seed);
  ShareFit fit(contender.rule.value_or(ShareRule::kWorth), typical_for(trace, contender, seed),
               std::move(nodes));
  Rng rng = Rng::stream(seed, "openb choice");
  std::int64_t arrived = 0;
  std::int64_t used = 0;
  std::size_t decisions = 0;
  Outcome outcome;
  const double seconds = seconds_of([&] {
    while (arrived < trace.capacity) {
      const ShareRequest& pod = arrivals[decisions++];
      arrived += thousandths_of(pod);
      const auto choice = contender.rule ? fit.choose(pod) : random_choice(fit, pod, rng);
      if (!choice) {
        outcome.lost_without_gpu += pod.asks_device() ? 0 : 1;
        continue;
      }
      fit.take(pod, *choice);
      used += thousandths_of(pod);
    }
  });
  outcome.allocated = 100.0 * static_cast<double>(used) / static_cast<double>(trace.capacity);
  outcome.decision_us = seconds * 1e6 / static_cast<double>(decisions);
  return outcome;
}

Outcome mean_outcome(const OpenbTrace& trace, const Contender& contender,
                     std::span<const std::uint64_t> seeds) {
  Outcome mean;
  const auto draws = static_cast<double>(seeds.size());
  for (const std::uint64_t seed : seeds) {
    const Outcome outcome = play(trace, contender, seed);
    mean.allocated += outcome.allocated / draws;
    mean.lost_without_gpu += outcome.lost_without_gpu / draws;
    mean.decision_us += outcome.decision_us / draws;
  }
  return mean;
}

double once(const ShareRequest& /*pod*/) { return 1; }
ShareRequest same(ShareRequest pod, Rng& /*rng*/) { return pod; }

/// Mixes that show whether the worth rule is good in general or only on this trace.
constexpr OpenbMix kMixes[] = {
    {"no pods without GPU", [](const ShareRequest& p) { return p.asks_device() ? 1.0 : 0.0; },
     same},
    {"pods without GPU twice as often",
     [](const ShareRequest& p) { return p.asks_device() ? 1.0 : 2.0; }, same},
    {"several GPUs 12 times as often",
     [](const ShareRequest& p) { return p.devices > 1 ? 12.0 : 1.0; }, same},
    {"parts only", [](const ShareRequest& p) { return p.is_part() ? 1.0 : 0.0; }, same},
    {"no 810 parts", [](const ShareRequest& p) { return p.thousandths == 810 ? 0.0 : 1.0; }, same},
    {"half the CPU and memory", once,
     [](ShareRequest p, Rng&) {
       p.cpu /= 2;
       p.memory /= 2;
       return p;
     }},
    {"1.3 times the CPU", once,
     [](ShareRequest p, Rng&) {
       p.cpu = std::min<std::int64_t>(p.cpu * 13 / 10, 88'000);
       return p;
     }},
    {"parts of 50 to 900 alike", once, [](ShareRequest p, Rng& rng) {
       if (p.is_part()) p.thousandths = 50 + 50 * static_cast<int>(rng.below(18));
       return p;
     }}};

/// The rule against FGD, each on the mix's own draws.
void print_mix(const OpenbTrace& trace, const OpenbMix& mix) {
  const OpenbTrace made = mixed(trace, mix);
  const auto seeds = std::span(kSeeds).first(3);
  const double fgd = mean_outcome(made, {"", ShareRule::kFragmentation, {}}, seeds).allocated;
  print_figure({.bench = "fragmentation",
                .name = fmt::format("openb with {}: worth", mix.name),
                .value = mean_outcome(made, {"", ShareRule::kWorth, {}}, seeds).allocated,
                .unit = "%",
                .peer = "FGD",
                .peer_value = fgd});
}

void print_contender(const Contender& contender, const Outcome& outcome,
                     std::optional<double> fgd) {
  const std::string name(contender.name);
  print_figure({.bench = "fragmentation",
                .name = "openb allocation at 100 % arrived: " + name,
                .value = outcome.allocated,
                .unit = "%",
                .peer = fgd ? "FGD" : "",
                .peer_value = fgd});
  if (contender.published) {
    print_figure(
        {.bench = "fragmentation",
         .name = fmt::format("openb {}: points from the published {}", name, *contender.published),
         .value = std::abs(outcome.allocated - *contender.published),
         .unit = "points",
         .target = 0.3});
  }
  print_figure({.bench = "fragmentation",
                .name = "openb decision: " + name,
                .value = outcome.decision_us,
                .unit = "us"});
  print_figure({.bench = "fragmentation",
                .name = "openb pods without GPU that were lost: " + name,
                .value = outcome.lost_without_gpu,
                .unit = "pods",
                .target = 0});
}

int run(const std::string& folder) {
  const std::optional<OpenbTrace> trace = read_openb(folder);
  if (!trace) {
    fmt::print(stderr, "SKIPPED: no cluster/openb_*.csv.gz in '{}' (--traces DIR)\n", folder);
    return 0;
  }
  std::optional<double> fgd;
  for (const Contender& contender : kContenders) {
    const Outcome outcome = mean_outcome(*trace, contender, kSeeds);
    print_contender(contender, outcome, fgd);
    if (contender.rule == ShareRule::kFragmentation) fgd = outcome.allocated;
  }
  for (const OpenbMix& mix : kMixes) print_mix(*trace, mix);
  return 0;
}

}  // namespace
}  // namespace orrery

int main(int argc, char** argv) {
  const bool given = argc == 3 && std::string_view(argv[1]) == "--traces";
  return orrery::run(given ? argv[2] : "");
}
