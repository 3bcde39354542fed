// Time that a start or an end of a gang takes in the model of a shared network with 10,000 gangs on
// 12,500 nodes, compared with filling all links anew.
#include <algorithm>
#include <array>
#include <vector>

#include "base/numbers/rng.hpp"
#include "bench/figure.hpp"
#include "fleet/fleet.hpp"
#include "fleet/spec/builder.hpp"
#include "hardware/builtin_catalog.hpp"
#include "twin/traffic/job_traffic.hpp"

namespace orrery {
namespace {

constexpr std::uint32_t kGangs = 10'000;

const char* spec_text() {
  return R"(apiVersion: orrery/v1
kind: Fleet
name: bench
sites:
- name: site
  fabrics:
  - name: compute
    type: ib-ndr
    topology: rail-optimized-fat-tree
    leaf_oversubscription: 3
    switch_radix: 128
    unit_nodes: 32
  halls:
  - name: hall
    pods:
    - name: pod
      racks:
      - count: 3125
        cooling: in-row-or-dense-air
        nodes: [{type: dgx-h100, count: 4}]
)";
}

struct Gang {
  std::vector<NodeDevices> nodes;
  StepTraffic traffic;
};

/// Two runs of nodes anywhere, so that every gang leaves its leaves; half of them rings, half all
/// to all. Rates a node are drawn up to `rate_max`.
Gang any_gang(Rng& rng, std::uint32_t nodes, double rate_max) {
  constexpr std::array<std::uint32_t, 8> kHalves{1, 1, 1, 2, 2, 4, 8, 32};
  const std::uint32_t half = kHalves[rng.below(kHalves.size())];
  Gang gang;
  std::array<std::uint32_t, 2> firsts{};
  for (std::uint32_t& first : firsts) {
    first = static_cast<std::uint32_t>(rng.below(nodes / half)) * half;
  }
  if (firsts[0] == firsts[1]) firsts[1] = (firsts[0] + half) % (nodes / half * half);
  std::ranges::sort(firsts);
  for (const std::uint32_t first : firsts) {
    for (std::uint32_t i = 0; i < half; ++i) gang.nodes.push_back({NodeId(first + i), 1});
  }
  gang.traffic = {.seconds = Seconds(2), .window = Seconds(1)};
  gang.traffic.add(
      {.pattern = rng.below(2) == 0 ? ExchangePattern::kShift : ExchangePattern::kSpread,
       .reach = rng.below(2) == 0 ? 1.0 : 2.0 * half,
       .node_bytes = Bytes(rate_max * (0.1 + 0.9 * rng.uniform()))});
  return gang;
}

/// Mean seconds of filling every link anew, as a model without incremental updates would.
double seconds_anew(const FleetView& view, const std::vector<Gang>& gangs) {
  constexpr int kTimes = 20;
  double sum = 0;
  for (int i = 0; i < kTimes; ++i) {
    SharedLinks links;
    JobTraffic jobs(links, view);
    for (const Gang& gang : gangs) static_cast<void>(jobs.start(gang.nodes, gang.traffic));
    sum += seconds_of([&] { links.update(); });
  }
  return sum / kTimes;
}

struct Load {
  std::string name;
  double rate_max = 0;  ///< bytes/s of a node
  double tolerance = SharedLinks::kExact;
};

void bench_load(const Fleet& fleet, const Load& load) {
  constexpr int kEvents = 1000;
  const std::uint32_t nodes = fleet.topology().node_count();
  Rng rng(1);
  SharedLinks links(load.tolerance);
  JobTraffic jobs(links, fleet.view());
  std::vector<Gang> gangs;
  std::vector<std::optional<FlowId>> flows;
  gangs.reserve(kGangs);
  flows.reserve(kGangs);
  for (std::uint32_t i = 0; i < kGangs; ++i) {
    gangs.push_back(any_gang(rng, nodes, load.rate_max));
    flows.push_back(jobs.start(gangs.back().nodes, gangs.back().traffic));
  }
  links.update();
  std::vector<double> micros;
  micros.reserve(kEvents);
  std::size_t filled = 0;
  std::size_t changed = 0;
  for (int i = 0; i < kEvents; ++i) {
    const std::size_t at = rng.below(kGangs);
    const Gang next = any_gang(rng, nodes, load.rate_max);
    micros.push_back(1e6 / 2 * seconds_of([&] {
                       if (flows[at]) jobs.stop(*flows[at]);
                       changed += links.update().size();
                       filled += links.filled();
                       flows[at] = jobs.start(next.nodes, next.traffic);
                       changed += links.update().size();
                     }));
    filled += links.filled();
    gangs[at] = next;
  }
  std::ranges::sort(micros);
  double mean = 0;
  for (const double one : micros) mean += one / kEvents;
  const double anew = seconds_anew(fleet.view(), gangs) * 1e6;
  print_figure({.bench = "contention",
                .name = load.name + ": mean of an event",
                .value = mean,
                .unit = "us",
                .peer = "filling all links anew",
                .peer_value = anew});
  print_figure({.bench = "contention",
                .name = load.name + ": 99th percentile",
                .value = micros[kEvents * 99 / 100],
                .unit = "us",
                .peer = "filling all links anew",
                .peer_value = anew});
  print_figure({.bench = "contention",
                .name = load.name + ": flows filled an event",
                .value = static_cast<double>(filled) / (2 * kEvents),
                .unit = "flows"});
  print_figure({.bench = "contention",
                .name = load.name + ": flows whose rate changed an event",
                .value = static_cast<double>(changed) / (2 * kEvents),
                .unit = "flows"});
}

void bench_all() {
  const Catalog catalog = *Catalog::load(builtin_catalog(), {});
  const Document document = *Document::parse(spec_text(), "bench.yaml");
  const Fleet fleet(*build_topology(*read_fleet_spec(document), catalog));
  SharedLinks links;
  const double build = seconds_of([&] { const JobTraffic jobs(links, fleet.view()); });
  print_figure(
      {.bench = "contention", .name = "cuts of 12,500 nodes", .value = build * 1e3, .unit = "ms"});
  bench_load(fleet, {"few links full", 3e10});
  bench_load(fleet, {"some links full", 8e10});
  bench_load(fleet, {"some links full, to 1 %", 8e10, 1e-2});
  bench_load(fleet, {"most links full", 2e11});
  bench_load(fleet, {"most links full, to 1 %", 2e11, 1e-2});
}

}  // namespace
}  // namespace orrery

int main() { orrery::bench_all(); }
