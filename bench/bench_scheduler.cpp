// Time a decision of the scheduler takes, and its quality: gangs placed until a fleet is full,
// against published figures of Fluxion; passes over long queues; placements compared with first fit
// and random nodes. Decisions only, one thread; every input is made from a seed. Times are CPU time
// of the process, so that neighbours on the machine do not count.
#include <sys/resource.h>

#include <cmath>

#include "bench/bench_cluster.hpp"
#include "bench/placement_churn.hpp"
#include "bench/queue_generator.hpp"
#include "scheduler/moves/repack.hpp"

namespace orrery {
namespace {

/// 12 pods of 33 racks of 32 nodes of 8, the machine on which the peers were measured; the types
/// are of `pods` in turn. A rack of 32 such nodes is no rack of today: each is capped so that the
/// densest cooling carries it. Leaves of a rail serve a rack, spines eleven racks; above them the
/// network carries a seventh, as in Meta's 24k-GPU cluster (arXiv 2407.21783, section 3.3.1).
std::string k12_text(const std::vector<std::pair<std::string, int>>& pods, int racks = 33) {
  std::string text = R"(apiVersion: orrery/v1
kind: Fleet
name: k12
sites:
- name: site
  halls:
  - name: hall
    pods:
)";
  for (const auto& [type, count] : pods) {
    text += fmt::format(R"(    - name: {0}
      count: {1}
      racks:
      - count: {2}
        cooling: two-phase-direct
        nodes: [{{type: {0}, count: 32, max_power: 7.8 kW, typical_power: 7.7 kW}}]
)",
                        type, count, racks);
  }
  return text + R"(  fabrics:
  - {type: roce-400-th5, topology: rail-optimized-fat-tree, switch_radix: 128, unit_nodes: 32,
     pod_nodes: 352, spine_oversubscription: 7}
)";
}

constexpr const char* kTenants = R"(apiVersion: orrery/v1
kind: Tenants
name: bench
tenants:
- {name: research, weight: 2, guarantee: {'*': 20000}}
- {name: products, weight: 3, guarantee: {'*': 40000}}
- {name: search, parent: research}
- {name: vision, parent: research, weight: 2}
- {name: speech, parent: research}
- {name: chat, parent: products, guarantee: {'*': 20000}}
- {name: code, parent: products}
- {name: guests}
)";

constexpr double kMicro = 1e6;
constexpr double kMilli = 1e3;

void print_scheduler(Figure figure) {
  figure.bench = "scheduler";
  print_figure(figure);
}

/// CPU seconds a call takes.
template <class Call>
double cpu_seconds_of(Call&& call) {
  const auto spent = [] {
    struct rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
  };
  const double begin = spent();
  call();
  return spent() - begin;
}

Policy policy_of(std::string_view name) { return must(policy_named(name)); }

/// The policies that are measured side by side: topology best fit, and everything priced.
constexpr std::array<std::string_view, 2> kBoth{"capacity", "hardware-aware"};

std::size_t starts_of(const PassResult& result) {
  return static_cast<std::size_t>(
      std::count_if(result.decisions.begin(), result.decisions.end(),
                    [](const Decision& d) { return std::holds_alternative<StartJob>(d); }));
}

double percentile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))];
}

/// Plans of Llama-3.1-70B, steps of so many sequences of 8,192 tokens, on 64 to 4,096 of each type.
void put_plans(const Facts& facts, const Topology& topology, double sequences, PlanTable& plans) {
  const Work work{.model = &must(facts.models().require("llama-3.1-70b"))->model,
                  .what = TrainingWork{.sequence = Tokens(8192), .global_batch = sequences}};
  for (std::uint32_t type = 0; type < topology.type_count(); ++type) {
    for (std::uint32_t devices = 64; devices <= 4096; devices *= 2) {
      const FleetTypeId id(type);
      plans.put(
          {WorkId(0), id, devices},
          plan_work({{facts.catalog(), facts.calibration()}, topology}, work, {id, devices}, 4));
    }
  }
}

/// The k12 fleet with two thirds of its pods H100, the rest H200, and plans of Llama-3.1-70B.
class Yard {
 public:
  explicit Yard(const Facts& facts)
      : cluster_(facts, k12_text({{"dgx-h100", 8}, {"dgx-h200", 4}}), kTenants) {
    put_plans(facts, cluster_.fleet().topology(), 1024, cluster_.plans());
  }

  [[nodiscard]] BenchCluster& cluster() { return cluster_; }
  [[nodiscard]] Rng& rng() { return rng_; }
  [[nodiscard]] double all() const { return 12.0 * 33 * 32 * 8; }

  [[nodiscard]] QueueGenerator generator(std::uint32_t devices_max) {
    return {cluster_.fleet().topology(),
            cluster_.tenants(),
            {.classes = devices_max < 4096 ? 1'000u : 5'000u,
             .devices_max = devices_max,
             .plans = &cluster_.plans()}};
  }

  /// One gang, with its plan where there is one.
  [[nodiscard]] JobRequest gang(std::uint32_t devices, FleetTypeId type = FleetTypeId(0)) {
    JobRequest job;
    job.tenant = *cluster_.tenants().find("guests");
    job.estimate = Duration::hours(2);
    job.preemptible = true;
    RoleRequest role;
    role.devices_min = role.devices_max = devices;
    GangOption option;
    option.gang.type = type;
    option.gang.devices = devices;
    option.gang.node_devices = std::min(devices, 8u);
    const PlanKey key{WorkId(0), type, devices};
    const PlanEntry* entry = cluster_.plans().find(key);
    if (entry != nullptr && *entry) option.plan = key;
    role.options.push_back(option);
    job.roles.push_back(role);
    return job;
  }

  /// Starts jobs, past the queue, until this share of the fleet is in use or nothing more fits.
  void fill(QueueGenerator& jobs, double part) {
    int refused = 0;
    while (static_cast<double>(cluster_.busy()) < part * all() && refused < 200) {
      refused = cluster_.run(jobs.next()) ? 0 : refused + 1;
    }
    for (RunningJob& job : cluster_.running())
      job.started = cluster_.now() - Duration::minutes(minutes());
  }

  /// Ends random jobs until at most this share of the fleet is in use.
  void drain(double part) {
    while (static_cast<double>(cluster_.busy()) > part * all()) {
      cluster_.finish(rng_.below(cluster_.running().size()));
    }
  }

 private:
  [[nodiscard]] std::int64_t minutes() { return 1 + static_cast<std::int64_t>(rng_.below(120)); }

  BenchCluster cluster_;
  Rng rng_{7};
};

/// Milliseconds a placement of Fluxion (flux-sched) on this machine, first fit, measured elsewhere;
/// its policies that choose the best place take 160 to 190 ms, its memory is 576 to 729 MB.
struct FluxionCase {
  const char* name;
  std::uint32_t devices;
  TopologyLevel required;
  double peer_ms;
};

constexpr std::array<FluxionCase, 6> kFluxion{
    {{"8 GPUs", 8, TopologyLevel::kFleet, 0.235},
     {"64 GPUs", 64, TopologyLevel::kFleet, 0.62},
     {"512 GPUs", 512, TopologyLevel::kFleet, 3.7},
     {"4,096 GPUs", 4096, TopologyLevel::kFleet, 53},
     {"256 GPUs in one rack", 256, TopologyLevel::kRack, 1.89},
     {"1,024 GPUs in one pod", 1024, TopologyLevel::kPod, 7.6}}};

void bench_fluxion() {
  constexpr double kTimesFaster = 20;
  constexpr double kPeerMegabytes = 576;
  const Catalog catalog = must(Facts::load({})).catalog();
  const Topology topology = topology_of(k12_text({{"dgx-h100", 12}}), catalog);
  const PlaceTree tree(topology);
  for (const FluxionCase& one : kFluxion) {
    Fleet fleet(topology);
    Placer placer(tree);
    const GangRequest gang{.type = FleetTypeId(0),
                           .devices = one.devices,
                           .node_devices = 8,
                           .required = one.required};
    std::size_t placed = 0;
    const double seconds = cpu_seconds_of([&] {
      while (const AllocationOrRefusal found = placer.place(fleet.view(), gang)) {
        take(fleet, *found, {});
        ++placed;
      }
    });
    print_scheduler({.name = fmt::format("k12 filled with gangs of {} ({} of them): a placement",
                                         one.name, placed),
                     .value = seconds / static_cast<double>(placed) * kMilli,
                     .unit = "ms",
                     .target = one.peer_ms / kTimesFaster,
                     .peer = "Fluxion, first fit, measured elsewhere",
                     .peer_value = one.peer_ms});
  }
  struct rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  print_scheduler({.name = "k12 filled: peak memory of the process",
                   .value = static_cast<double>(usage.ru_maxrss) * 1024 / 1e6,
                   .unit = "MB",
                   .target = 100,
                   .peer = "Fluxion, the least, measured elsewhere",
                   .peer_value = kPeerMegabytes});
}

void print_quality(const std::string& rule, const ChurnResult& half) {
  for (const auto& [size, quality] : {std::pair{64, half.of_64}, {512, half.of_512}}) {
    const std::string name = fmt::format("half-full, gangs of {} GPUs, {}: ", size, rule);
    print_scheduler({.name = name + "racks spanned", .value = quality.racks, .unit = "racks"});
    print_scheduler({.name = name + "pods spanned", .value = quality.pods, .unit = "pods"});
    print_scheduler({.name = name + "modelled step of Llama-3.1-70B",
                     .value = quality.step_seconds,
                     .unit = "s"});
  }
  print_scheduler({.name = fmt::format("half-full, {}: scale-up domains left whole, of those "
                                       "with something free",
                                       rule),
                   .value = half.whole_nodes * 100,
                   .unit = "%"});
}

// Places the same arrivals by each rule, starting from an empty fleet. A step has 4 M tokens, so
// that 512 devices feel their network.
void bench_quality(const Facts& facts) {
  const Topology topology = topology_of(k12_text({{"dgx-h100", 36}}, 11), facts.catalog());
  const PlaceTree tree(topology);
  PlanTable plans;
  put_plans(facts, topology, 512, plans);
  PlacementChurn churn(tree, plans);
  const std::array<std::pair<NodeRule, std::string>, 4> rules{
      {{NodeRule::kBestFit, "best fit"},
       {NodeRule::kFirstPlace, "first place"},
       {NodeRule::kFirstNodes, "first nodes"},
       {NodeRule::kRandom, "random nodes"}}};
  double best = 0;
  for (const auto& [rule, name] : rules) {
    print_quality(name, churn.run(rule, {.load = 0.5}));
    const ChurnResult full = churn.run(rule, {.load = 1.1});
    print_scheduler({.name = "offered 110 %, " + name + ": devices in use",
                     .value = full.occupancy * 100,
                     .unit = "%"});
    const double goodput = full.occupancy * full.speed;
    best = rule == NodeRule::kBestFit ? goodput : best;
    print_scheduler({.name = "offered 110 %, " + name + ": modelled goodput that best fit adds",
                     .value = (best / goodput - 1) * 100,
                     .unit = "%"});
  }
}

// Row 1: one accelerator each, a queue of 30,000 to an empty fleet.
void bench_small(Yard& yard) {
  constexpr std::size_t kJobs = 30'000;
  BenchCluster& cluster = yard.cluster();
  for (const std::string_view policy : kBoth) {
    JobRequest job = yard.gang(1);
    job.class_id = ClassId(0);
    for (std::size_t i = 0; i < kJobs; ++i) cluster.submit(job);
    const Policy rules = policy_of(policy);
    PassResult result;
    const double seconds =
        cpu_seconds_of([&] { result = cluster.decide(rules, PassKind::kIncremental); });
    const auto started = static_cast<double>(cluster.carry_out(result));
    print_scheduler({.name = fmt::format("{}: one accelerator, a placement ({:.0f} a second)",
                                         policy, started / seconds),
                     .value = seconds / started * kMicro,
                     .unit = "us",
                     .target = kMicro / 50'000});
    yard.drain(0);
    cluster.cancel_waiting();
  }
}

// Row 2: a gang of 512 nodes on a half-full, fragmented fleet that changes between the tries.
void bench_large(Yard& yard) {
  constexpr int kTries = 300;
  BenchCluster& cluster = yard.cluster();
  QueueGenerator jobs = yard.generator(512);
  yard.fill(jobs, 0.9);
  for (const std::string_view policy : kBoth) {
    const Policy rules = policy_of(policy);
    std::vector<double> times;
    std::size_t started = 0;
    for (int i = 0; i < kTries; ++i) {
      yard.drain(0.48);
      yard.fill(jobs, 0.5);
      cluster.submit(yard.gang(4096));
      PassResult result;
      times.push_back(
          cpu_seconds_of([&] { result = cluster.decide(rules, PassKind::kIncremental); }));
      started += starts_of(result);
      cluster.cancel_waiting();
    }
    const double target = policy == kBoth[0] ? 2.5 : 10;
    print_scheduler({.name = fmt::format("{}: a gang of 512 nodes, half-full fleet, 99th "
                                         "percentile ({} of {} started)",
                                         policy, started, kTries),
                     .value = percentile(times, 0.99) * kMilli,
                     .unit = "ms",
                     .target = target});
    print_scheduler({.name = fmt::format("{}: the same, median", policy),
                     .value = percentile(times, 0.5) * kMilli,
                     .unit = "ms"});
  }
  yard.drain(0);
}

// Row 4: gangs of 8 to 512 accelerators, a hundred a pass, jobs ending in between.
void bench_gangs(Yard& yard) {
  constexpr int kPasses = 60;
  BenchCluster& cluster = yard.cluster();
  for (const std::string_view policy : kBoth) {
    const Policy rules = policy_of(policy);
    double seconds = 0;
    double started = 0;
    for (int pass = 0; pass < kPasses; ++pass) {
      yard.drain(0.4);
      for (int i = 0; i < 100; ++i) cluster.submit(yard.gang(8u << yard.rng().below(7)));
      PassResult result;
      seconds += cpu_seconds_of([&] { result = cluster.decide(rules, PassKind::kIncremental); });
      started += static_cast<double>(cluster.carry_out(result));
      cluster.cancel_waiting();
    }
    const double target = policy == kBoth[0] ? 5'000 : 2'000;
    print_scheduler({.name = fmt::format("{}: gangs of 8 to 512 accelerators, a gang ({:.0f} a "
                                         "second)",
                                         policy, started / seconds),
                     .value = seconds / started * kMicro,
                     .unit = "us",
                     .target = kMicro / target});
    yard.drain(0);
  }
}

// Rows 3 and 5: a full fleet of 10,000 jobs, and a gang of 512 nodes of a tenant whose guarantee
// others have borrowed; then the same gang without a right to anything.
void bench_reclaim(Yard& yard) {
  BenchCluster& cluster = yard.cluster();
  while (cluster.running().size() < 10'000) {
    const std::size_t i = cluster.running().size();
    if (!cluster.run(yard.gang(i % 2 == 0 ? 8 : 12, FleetTypeId(i % 3 == 2 ? 1 : 0)))) break;
  }
  for (RunningJob& job : cluster.running()) {
    job.started =
        cluster.now() - Duration::minutes(1 + static_cast<std::int64_t>(yard.rng().below(120)));
  }
  cluster.wait(Duration::hours(1));
  for (const std::string_view policy : kBoth) {
    const Policy rules = policy_of(policy);
    for (const std::string_view tenant : {"products/chat", "guests"}) {
      JobRequest job = yard.gang(4096);
      job.tenant = *cluster.tenants().find(tenant);
      cluster.submit(job);
      PassResult result;
      const double seconds =
          cpu_seconds_of([&] { result = cluster.decide(rules, PassKind::kIncremental); });
      const bool reclaims = tenant != "guests";
      print_scheduler(
          {.name = fmt::format("{}: {} of 512 nodes, {} jobs running ({} told to stop)", policy,
                               reclaims ? "preemption for a gang" : "refusal of a gang",
                               cluster.running().size(), result.decisions.size()),
           .value = seconds * kMilli,
           .unit = "ms",
           .target = reclaims ? 200.0 : 50.0});
      cluster.cancel_waiting();
    }
  }
  yard.drain(0);
}

// Row 9, first half: what a pass costs when one job ended; the queue as long as in row 6.
void bench_incremental(Yard& yard, const Policy& rules) {
  constexpr int kPasses = 30;
  BenchCluster& cluster = yard.cluster();
  std::vector<double> times;
  for (int i = 0; i < kPasses; ++i) {
    cluster.finish(yard.rng().below(cluster.running().size()));
    cluster.wait(Duration::seconds(10));
    PassResult result;
    times.push_back(
        cpu_seconds_of([&] { result = cluster.decide(rules, PassKind::kIncremental); }));
    cluster.carry_out(result);
  }
  print_scheduler({.name = fmt::format("{}: incremental pass after a job ended, {} waiting, median",
                                       rules.name, cluster.waiting().size()),
                   .value = percentile(times, 0.5) * kMilli,
                   .unit = "ms",
                   .target = 10});
}

// Rows 6 and 9: a full fleet and 50,000 waiting jobs of 5,000 classes.
void bench_queue(Yard& yard) {
  BenchCluster& cluster = yard.cluster();
  for (const std::string_view policy : {std::string_view("conservative"), kBoth[1]}) {
    const Policy rules = policy_of(policy);
    QueueGenerator small = yard.generator(128);
    yard.fill(small, 1);
    QueueGenerator jobs = yard.generator(4096);
    for (int i = 0; i < 50'000; ++i) cluster.submit(jobs.next());
    PassResult result;
    const double seconds = cpu_seconds_of([&] { result = cluster.decide(rules, PassKind::kFull); });
    print_scheduler({.name = fmt::format("{}: full pass, {} waiting of {} classes, {} running "
                                         "({} started, {} slots)",
                                         policy, cluster.waiting().size(), jobs.classes(),
                                         cluster.running().size(), starts_of(result),
                                         result.reservations.size()),
                     .value = seconds,
                     .unit = "s",
                     .target = 1});
    cluster.carry_out(result);
    bench_incremental(yard, rules);
    cluster.cancel_waiting();
    yard.drain(0);
  }
}

// Row 9, second half: a fleet with holes, from which racks are emptied. Moving a device costs as
// much as it computes in ten minutes; one in a whole rack is worth an hour.
void bench_repack(Yard& yard) {
  constexpr std::int64_t kMoveSeconds = 600;
  BenchCluster& cluster = yard.cluster();
  QueueGenerator jobs = yard.generator(128);
  yard.fill(jobs, 1);
  yard.drain(0.7);
  std::vector<MovableGang> movable;
  for (const RunningJob& job : cluster.running()) {
    const PlacedGang& placed = job.gangs.front();
    const GangRequest& request = job.request->roles[placed.role].options[placed.option].gang;
    movable.push_back({{&placed.allocation, placed.host}, &request, kMoveSeconds * job.devices()});
  }
  Placer placer(cluster.tree());
  RepackPlan plan;
  const double seconds = cpu_seconds_of(
      [&] { plan = repack(cluster.fleet().view(), movable, {.gain_per_device = 3600}, placer); });
  print_scheduler(
      {.name = fmt::format("repack of k12, {} running jobs ({} moves, whole racks {} "
                           "before, {} after)",
                           movable.size(), plan.moves.size(), plan.whole_before, plan.whole_after),
       .value = seconds,
       .unit = "s",
       .target = 10});
  yard.drain(0);
}

constexpr const char* kAlone = R"(apiVersion: orrery/v1
kind: Tenants
name: alone
tenants: [{name: guests}]
)";

/// 1,000 nodes in 10 pods of 25 racks.
constexpr const char* kThousand = R"(apiVersion: orrery/v1
kind: Fleet
name: thousand
sites:
- name: site
  halls:
  - name: hall
    pods:
    - name: pod
      count: 10
      racks:
      - count: 25
        cooling: in-row-or-dense-air
        nodes: [{type: dgx-h100, count: 4}]
)";

// Slurm's figures were measured elsewhere, on its own simulator of these sizes.
void bench_slurm(const Facts& facts, Yard& yard) {
  constexpr double kSlurmFullDepth = 39.5;  // s
  constexpr double kSlurmJob = 254;         // ms
  constexpr double kSlurmFill = 126;        // s
  BenchCluster small(facts, kThousand, kAlone);
  QueueGenerator jobs(small.fleet().topology(), small.tenants(),
                      {.classes = 500, .devices_max = 512});
  const Policy conservative = policy_of("conservative");
  for (int i = 0; i < 5'000; ++i) small.submit(jobs.next());
  PassResult result;
  double full = cpu_seconds_of([&] { result = small.decide(conservative, PassKind::kFull); });
  small.carry_out(result);
  full += cpu_seconds_of([&] { result = small.decide(conservative, PassKind::kFull); });
  print_scheduler({.name = fmt::format("conservative: 5,000 jobs to 1,000 empty nodes, then a pass "
                                       "of full depth ({} running, {} slots)",
                                       small.running().size(), result.reservations.size()),
                   .value = full,
                   .unit = "s",
                   .peer = "Slurm, full-depth backfill, measured elsewhere",
                   .peer_value = kSlurmFullDepth});
  BenchCluster& cluster = yard.cluster();
  QueueGenerator many = yard.generator(512);
  for (int i = 0; i < 10'000; ++i) cluster.submit(many.next());
  const double fill =
      cpu_seconds_of([&] { result = cluster.decide(policy_of("easy"), PassKind::kIncremental); });
  const auto started = static_cast<double>(cluster.carry_out(result));
  print_scheduler({.name = fmt::format("easy: 10,000 jobs to an empty k12, a job started ({} of "
                                       "them)",
                                       started),
                   .value = fill / started * kMilli,
                   .unit = "ms",
                   .peer = "Slurm, a backfilled job on 12,500 nodes, measured elsewhere",
                   .peer_value = kSlurmJob});
  print_scheduler({.name = "easy: 10,000 jobs to an empty k12, filled",
                   .value = fill,
                   .unit = "s",
                   .peer = "Slurm filling 12,500 nodes, CPU seconds, measured elsewhere",
                   .peer_value = kSlurmFill});
  cluster.cancel_waiting();
  yard.drain(0);
}

/// `--only NAME`: one of the groups below.
int run(int argc, char** argv) {
  const std::string_view only = argc == 3 && std::string_view(argv[1]) == "--only" ? argv[2] : "";
  const auto wanted = [only](std::string_view name) { return only.empty() || only == name; };
  if (wanted("fluxion")) bench_fluxion();
  const Facts facts = must(Facts::load({}));
  if (wanted("quality")) bench_quality(facts);
  Yard yard(facts);
  if (wanted("small")) bench_small(yard);
  if (wanted("large")) bench_large(yard);
  if (wanted("gangs")) bench_gangs(yard);
  if (wanted("reclaim")) bench_reclaim(yard);
  if (wanted("queue")) bench_queue(yard);
  if (wanted("repack")) bench_repack(yard);
  if (wanted("slurm")) bench_slurm(facts, yard);
  return 0;
}

}  // namespace
}  // namespace orrery

int main(int argc, char** argv) { return orrery::run(argc, argv); }
