// Time a scheduler needs to price a gang on some devices: the place of the gang, whether its ranks
// fit, and its step there.
#include <map>

#include "bench/figure.hpp"
#include "fleet/fleet.hpp"
#include "fleet/spec/builder.hpp"
#include "perf/facts.hpp"
#include "scheduler/plans/plan_work.hpp"

namespace orrery {
namespace {

/// 12 pods of 264 racks of 4 nodes of 8 H100 in a rail-optimised tree of three tiers.
constexpr const char* kFleet = R"(apiVersion: orrery/v1
kind: Fleet
name: k12
sites:
- name: site
  halls:
  - name: hall
    pods:
    - name: pod
      count: 12
      racks:
      - count: 264
        cooling: in-row-or-dense-air
        nodes: [{type: dgx-h100, count: 4}]
  fabrics:
  - {type: roce-400-th5, topology: rail-optimized-fat-tree, switch_radix: 128, unit_nodes: 64}
)";

std::vector<NodeDevices> whole_nodes(std::uint32_t count, std::uint32_t apart) {
  std::vector<NodeDevices> gang;
  for (std::uint32_t i = 0; i < count; ++i) gang.push_back({NodeId(7 + i * apart), 0xff});
  return gang;
}

void print_micros(const std::string& name, double seconds, double target) {
  print_figure(
      {.bench = "placement", .name = name, .value = seconds * 1e6, .unit = "us", .target = target});
}

/// Seconds a call, mean of many.
template <class Call>
double mean_seconds(int times, Call&& call) {
  return seconds_of([&] {
           for (int i = 0; i < times; ++i) call();
         }) /
         times;
}

void bench_gang(const Fleet& fleet, std::uint32_t nodes, std::uint32_t apart, double target) {
  const std::vector<NodeDevices> gang = whole_nodes(nodes, apart);
  const FleetView view = fleet.view();
  const ParallelPlan plan{.tp = 8, .dp = nodes};
  const std::string name =
      fmt::format("{} nodes x 8{}", nodes, apart > 1 ? ", every 24th of the fleet" : "");
  double sum = 0;
  print_micros(name + ": where the gang lies",
               mean_seconds(20'000, [&] { sum += placement_of(gang, view).scale_out_quality; }),
               target);
  print_micros(
      name + ": whether the ranks fit",
      mean_seconds(20'000, [&] { sum += check_ranks(plan, gang, fleet.topology()) ? 1 : 0; }),
      target / 4);
  if (!(sum > 0)) fmt::print(stderr, "bench_placement: no place\n");
}

void bench_plans(const Facts& facts, const Fleet& fleet) {
  const PlanSources sources{{facts.catalog(), facts.calibration()}, fleet.topology()};
  const FleetTypeId type = *fleet.topology().find_type("h100");
  const Work work{.model = &(*facts.models().require("llama-3.1-70b"))->model,
                  .what = TrainingWork{.sequence = Tokens(8192), .global_batch = 1024}};
  std::optional<PlanEntry> entry;
  const double seconds = seconds_of([&] { entry = plan_work(sources, work, {type, 4096}, 4); });
  if (!*entry) {
    fmt::print(stderr, "bench_placement: {}\n", entry->error().text());
    std::exit(1);
  }
  print_micros("Llama-3.1-70B on 4096 H100: its plans found", seconds, 1e6);
  const Placement placement = placement_of(whole_nodes(512, 1), fleet.view());
  double sum = 0;
  print_micros("Llama-3.1-70B on 4096 H100: a plan repriced",
               mean_seconds(100'000, [&] { sum += reprice((*entry)->front(), placement)->ratio; }),
               2);
  PlanTable table;
  for (std::uint32_t w = 0; w < 1000; ++w) {
    for (std::uint32_t k = 0; k < 10; ++k) table.put({WorkId(w), type, 8u << k}, *entry);
  }
  std::uint32_t next = 0;
  print_micros("an entry found among 10,000",
               mean_seconds(1'000'000,
                            [&] {
                              next = (next + 617) % 1000;
                              sum += table.find({WorkId(next), type, 512}) == nullptr ? 0 : 1;
                            }),
               0.1);
  if (!(sum > 0)) fmt::print(stderr, "bench_placement: nothing found\n");
}

int run() {
  const Facts facts = *Facts::load({});
  const Document document = *Document::parse(kFleet, "bench.yaml");
  Result<Topology> topology = build_topology(*read_fleet_spec(document), facts.catalog());
  if (!topology) {
    fmt::print(stderr, "bench_placement: {}\n", topology.error().text());
    return 1;
  }
  const Fleet fleet(*std::move(topology));
  bench_gang(fleet, 1, 1, 0.5);
  bench_gang(fleet, 8, 1, 2);
  bench_gang(fleet, 512, 1, 60);
  bench_gang(fleet, 512, 24, 60);
  bench_plans(facts, fleet);
  return 0;
}

}  // namespace
}  // namespace orrery

int main() { return orrery::run(); }
