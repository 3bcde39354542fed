// How fast a queue of jobs is resolved: 50,000 of 5,000 kinds on 101,376 accelerators.
#include <vector>

#include "base/numbers/rng.hpp"
#include "bench/figure.hpp"
#include "fleet/spec/builder.hpp"
#include "perf/facts.hpp"
#include "scheduler/plans/class_table.hpp"
#include "scheduler/request/resolve.hpp"

namespace orrery {
namespace {

constexpr std::uint32_t kKinds = 5'000;
constexpr std::uint32_t kJobs = 50'000;

/// 12 pods of 264 racks of 3 DGX H100 and a DGX A100.
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
        nodes:
        - {type: dgx-h100, count: 3}
        - {type: dgx-a100-80g, count: 1}
  fabrics:
  - {name: h, type: roce-400-th5, topology: rail-only-fat-tree, node_types: [dgx-h100]}
  - {name: a, type: ib-hdr, topology: rail-only-fat-tree, node_types: [dgx-a100-80g]}
)";

/// Sizes 1 to 4,096, one or both types or any, replicas, wishes about topology and hosts, elastic,
/// models.
JobSpec kind_of_job(Rng& rng) {
  constexpr TopologyLevel kLevels[] = {TopologyLevel::kRack, TopologyLevel::kPod,
                                       TopologyLevel::kHall};
  constexpr const char* kModels[] = {"llama-3.1-8b", "llama-3.1-70b", "mistral-7b", "qwen3-8b"};
  JobSpec job;
  RoleSpec& role = job.roles.emplace_back();
  role.accelerators = 1u << rng.below(13);
  if (rng.below(2) == 0) role.types.push_back({.type = "h100"});
  if (rng.below(3) == 0) role.types.push_back({.type = "a100", .speed = 1});
  if (rng.below(3) == 0) role.topology.preferred = kLevels[rng.below(3)];
  if (*role.accelerators <= 16 && rng.below(3) == 0) role.topology.required = TopologyLevel::kRack;
  if (*role.accelerators <= 4096 && rng.below(5) == 0) role.topology.required = TopologyLevel::kPod;
  if (rng.below(4) == 0) role.host.cpu = 1 + static_cast<double>(rng.below(8));
  if (rng.below(4) == 0) role.host.memory = Bytes(1e9 * static_cast<double>(1 + rng.below(100)));
  job.estimate = Seconds(60.0 * static_cast<double>(1 + rng.below(1000)));
  job.software.framework = rng.below(2) == 0 ? "pytorch" : "";
  if (rng.below(4) == 0) {
    role.accelerators_min = std::max(1u, *role.accelerators / 8);
    role.accelerators_max = *role.accelerators;
    role.accelerators.reset();
  }
  if (rng.below(4) == 0) role.replicas = static_cast<std::uint32_t>(1 + rng.below(16));
  if (rng.below(3) == 0) {
    role.work.emplace();
    role.work->model = kModels[rng.below(4)];
    role.work->global_batch = 4096;
    role.work->steps = 100 + rng.below(1000);
    job.kind = JobKind::kTrain;
  }
  return job;
}

enum class Plans { kAnyone, kSearched };

void bench_queue(const Facts& facts, const Topology& topology, Plans plans) {
  std::vector<JobSpec> kinds;
  Rng rng(1);
  while (kinds.size() < kKinds) kinds.push_back(kind_of_job(rng));
  PristineFleet fleet(topology);
  const TenantTree tenants = default_tenant_tree(topology);
  WorkTable works;
  PlanSizes sizes(PlanSources{{facts.catalog(), facts.calibration()}, topology, {}});
  ClassTable classes;
  std::uint32_t never = 0;
  const double seconds = seconds_of([&] {
    for (std::uint32_t i = 0; i < kJobs; ++i) {
      Result<JobRequest> job =
          resolve_job(kinds[i % kKinds], {.fleet = fleet,
                                          .models = facts.models(),
                                          .tenants = tenants,
                                          .works = works,
                                          .sizes = plans == Plans::kSearched ? &sizes : nullptr,
                                          .now = Instant()});
      if (job) {
        job->class_id = classes.of(*job);
      } else {
        ++never;
      }
    }
  });
  const std::string name =
      fmt::format("50,000 jobs resolved, {} classes, {} never{}", classes.size(), never,
                  plans == Plans::kSearched ? ", sizes with a plan looked for" : "");
  print_figure({.bench = "resolve", .name = name, .value = seconds, .unit = "s", .target = 2});
}

int run() {
  const Facts facts = *Facts::load({});
  const Document document = *Document::parse(kFleet, "bench.yaml");
  Result<Topology> topology = build_topology(*read_fleet_spec(document), facts.catalog());
  if (!topology) {
    fmt::print(stderr, "bench_resolve: {}\n", topology.error().text());
    return 1;
  }
  bench_queue(facts, *topology, Plans::kAnyone);
  bench_queue(facts, *topology, Plans::kSearched);
  return 0;
}

}  // namespace
}  // namespace orrery

int main() { return orrery::run(); }
