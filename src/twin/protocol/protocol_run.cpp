#include "twin/protocol/protocol_run.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace orrery {
namespace {

constexpr int kSteps = 100;
constexpr int kCalmMinutes = 120;

constexpr std::array<const char*, 3> kTenants{"lab/red", "lab/blue", "solo"};
/// Tenants without quotas: each may hold everything.
constexpr const char* kNoQuotas =
    "apiVersion: orrery/v1\nkind: Tenants\nname: all\ntenants: [{name: lab}, {name: lab/red}, "
    "{name: "
    "lab/blue}, {name: solo}]\n";

/// Guarantees that fit the fleet, some limits, and sometimes a tenant that may not borrow or is
/// removed.
std::string draw_tenants(Rng& rng, std::size_t nodes) {
  const std::uint64_t all = 8 * nodes;
  std::uint64_t left = all;
  std::string yaml = "apiVersion: orrery/v1\nkind: Tenants\nname: drawn\ntenants:\n- {name: lab";
  if (rng.below(4) == 0) yaml += fmt::format(", limit: {{'*': {}}}", all - rng.below(all / 4));
  yaml += "}\n";
  for (const char* tenant : kTenants) {
    const std::uint64_t own = rng.below(left / 2 + 1);
    if (tenant == kTenants.back() && rng.below(8) == 0) continue;
    yaml += fmt::format("- {{name: {}", tenant);
    if (rng.below(3) != 0) {
      left -= own;
      yaml += fmt::format(", guarantee: {{h100: {}}}", own);
    }
    if (rng.below(2) == 0) yaml += fmt::format(", limit: {{h100: {}}}", own + rng.below(all));
    if (rng.below(4) == 0) yaml += ", borrow: false";
    yaml += "}\n";
  }
  return yaml;
}

/// Draws the faults of one seed.
class FaultInjector {
 public:
  FaultInjector(ProtocolWorld& world, std::uint64_t seed)
      : world_(world), rng_(Rng::stream(seed, "faults")) {}

  void strike();
  void fill_disk();
  /// Resizes an elastic job to other devices.
  void resize();
  void cap_power();
  /// Plans a maintenance window of some nodes, for now or later, or cancels it.
  void plan_maintenance();
  /// Lets executors and agents contradict what is known.
  void contradict();
  /// Changes the quotas of tenants.
  void set_quotas();
  [[nodiscard]] Duration pause(std::int64_t most_ms) {
    return Duration::milliseconds(
        1 + static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(most_ms))));
  }
  [[nodiscard]] std::uint64_t faults() const { return faults_; }
  [[nodiscard]] Rng& rng() { return rng_; }

 private:
  void strike_agent(NodeId at);
  void strike_keeper(NodeId at);
  void strike_node(NodeId at);
  void operate(NodeId at);
  void lie();
  [[nodiscard]] std::vector<NodeDevices> draw_place(std::uint32_t devices, const Allocation& has);
  [[nodiscard]] bool binding(const AttemptId& attempt) const;
  void later(VirtualTime::Event event) {
    world_.context().time().after(pause(rng_.below(8) == 0 ? 120'000 : 15'000), std::move(event));
  }
  void note(const std::string& what) {
    ++faults_;
    world_.context().note(what);
  }

  ProtocolWorld& world_;
  Rng rng_;
  std::uint64_t faults_ = 0;
};

void FaultInjector::strike() {
  const NodeId at = NodeId::at(rng_.below(world_.nodes().size()));
  switch (rng_.below(8)) {
    case 0:
    case 1:
      return strike_agent(at);
    case 2:
      return strike_keeper(at);
    case 3:
      return strike_node(at);
    case 4:
      note(fmt::format("node {} is cut off", at.value()));
      world_.cut(at);
      return later([this, at] { world_.join(at); });
    case 5:
      return operate(at);
    case 6:
      return lie();
    default:
      if (!world_.controller().lives()) return;
      ++faults_;
      world_.kill_controller("between two events");
  }
}

void FaultInjector::fill_disk() {
  note("the disk is full");
  world_.disk().fill();
  later([this] { world_.disk().free(); });
}

/// Draws some of the job's devices and some free ones, from a random node on.
std::vector<NodeDevices> FaultInjector::draw_place(std::uint32_t devices, const Allocation& has) {
  const FleetView view = world_.state().fleet().view();
  const std::size_t nodes = world_.nodes().size();
  const std::size_t first = rng_.below(nodes);
  std::vector<NodeDevices> place;
  for (std::size_t i = 0; i < nodes && devices > 0; ++i) {
    const NodeId at = NodeId::at((first + i) % nodes);
    std::uint64_t left = view.node(at).free_mask;
    for (const NodeDevices& part : has.ranks) left |= part.node == at ? part.devices : 0;
    NodeDevices taken{at, 0};
    for (; left != 0 && devices > 0; left &= left - 1) {
      if (rng_.below(8) == 0) continue;
      taken.devices |= left & (~left + 1);
      --devices;
    }
    if (taken.devices != 0) place.push_back(taken);
  }
  if (devices > 0) return {};
  std::sort(place.begin(), place.end(),
            [](const NodeDevices& a, const NodeDevices& b) { return a.node < b.node; });
  return place;
}

void FaultInjector::resize() {
  if (!world_.controller().lives()) return;
  const std::span<const RunningJob> running = world_.state().running();
  if (running.empty()) return;
  const RunningJob& run = running[rng_.below(running.size())];
  const RoleRequest& role = run.request->roles.front();
  if (!role.elastic()) return;
  ResizeJob resize{.job = run.id, .gangs = run.gangs, .terms = run.terms};
  PlacedGang& gang = resize.gangs.front();
  gang.option = static_cast<std::uint32_t>(rng_.below(role.options.size()));
  gang.allocation.ranks =
      draw_place(role.options[gang.option].gang.devices, run.gangs.front().allocation);
  if (gang.allocation.ranks.empty()) return;
  note(fmt::format("job {} shall have {} devices", run.id.value(), gang.allocation.devices()));
  Proposal proposal;
  proposal.result.decisions.emplace_back(std::move(resize));
  world_.operate(proposal);
}

void FaultInjector::cap_power() {
  const auto nodes = static_cast<double>(world_.nodes().size());
  std::optional<Watts> cap;
  if (rng_.below(4) != 0) cap = Watts{nodes * (3000 + 9000 * rng_.uniform())};
  note(cap ? fmt::format("power is capped at {:.0f} W", cap->value()) : "power is not capped");
  world_.cap_power(cap);
}

void FaultInjector::plan_maintenance() {
  SetMaintenance window{.window = static_cast<std::uint32_t>(rng_.below(3))};
  for (std::size_t at = 0; at < world_.nodes().size(); ++at) {
    if (rng_.below(3) == 0) window.nodes.push_back(NodeId::at(at));
  }
  window.from = world_.context().now() + pause(60'000);
  window.to = window.from + pause(120'000);
  note(fmt::format("window {}: {} nodes in maintenance", window.window, window.nodes.size()));
  world_.operate(std::move(window));
}

void FaultInjector::contradict() {
  note("something is said that cannot be");
  if (rng_.below(2) == 0) {
    world_.contradict();
  } else {
    const std::size_t jobs = world_.clients().submissions() + 3;
    const std::optional<Report> report = world_.reports().draw_misleading(jobs);
    if (report) world_.deliver(*report);
  }
}

void FaultInjector::set_quotas() {
  note("quotas change");
  world_.operate(SetTenants{draw_tenants(rng_, world_.nodes().size())});
}

void FaultInjector::strike_agent(NodeId at) {
  ProtocolNodes& nodes = world_.nodes();
  if (rng_.below(2) == 0) {
    note(fmt::format("agent {} dies", at.value()));
    nodes.kill_agent(at);
    return later([&nodes, at] { nodes.start_agent(at); });
  }
  note(fmt::format("agent {} freezes", at.value()));
  nodes.freeze_agent(at);
  later([&nodes, at] { nodes.thaw_agent(at); });
}

bool FaultInjector::binding(const AttemptId& attempt) const {
  if (!world_.controller().lives() || !world_.state().has(attempt.job)) return true;
  const Job& job = world_.state().job(attempt.job);
  return job.submission == nullptr || job.submission->restart == RestartPolicy::kAfterLease;
}

void FaultInjector::strike_keeper(NodeId at) {
  ProtocolNodes& nodes = world_.nodes();
  const std::vector<AttemptId> here = nodes.keepers_on(at);
  if (here.empty()) return;
  const AttemptId attempt = here[rng_.below(here.size())];
  const std::string of =
      fmt::format("of job {} attempt {} on {}", attempt.job.value(), attempt.attempt, at.value());
  switch (rng_.below(3)) {
    case 0:
      note("keeper dies " + of);
      return nodes.kill_keeper(at, attempt);
    case 1:
      note("rank fails " + of);
      return nodes.ranks().fail_one({at, attempt});
    default:
      // A binding lease relies on a keeper that can run: a frozen keeper cannot kill.
      if (binding(attempt)) return;
      note("keeper freezes " + of);
      nodes.freeze_keeper(at, attempt);
      later([&nodes, at, attempt] { nodes.thaw_keeper(at, attempt); });
  }
}

void FaultInjector::strike_node(NodeId at) {
  ProtocolNodes& nodes = world_.nodes();
  if (!nodes.powered(at)) {
    // The operator has confirmed that the node is off.
    note(fmt::format("node {} is fenced", at.value()));
    return world_.operate(FenceNode{at});
  }
  if (rng_.below(2) == 0) {
    note(fmt::format("node {} loses power", at.value()));
    nodes.power_off(at);
    return later([&nodes, at] { nodes.power_on(at); });
  }
  note(fmt::format("node {} finds itself broken", at.value()));
  const bool repair = rng_.below(2) == 0;
  nodes.report_fault(at, {FaultLayer::kAccelerator, "xid 79", repair, rng_.below(2) == 0});
}

void FaultInjector::operate(NodeId at) {
  switch (rng_.below(4)) {
    case 0:
      note(fmt::format("node {} is drained", at.value()));
      world_.operate(DrainNode{at, rng_.below(2) == 0, "test"});
      return later([this, at] { world_.operate(ResumeNode{at}); });
    case 1:
      note(fmt::format("node {} is made a spare", at.value()));
      world_.operate(SetSpare{at, true});
      return later([this, at] { world_.operate(SetSpare{at, false}); });
    case 2:
      if (world_.clients().submissions() == 0 || rng_.below(4) != 0) return;
      note("a job is cancelled");
      return world_.clients().cancel(rng_.below(world_.clients().submissions()));
    default:
      note(fmt::format("node {} is resumed", at.value()));
      return world_.operate(ResumeNode{at});
  }
}

void FaultInjector::lie() {
  note("something is said again");
  if (rng_.below(2) == 0) {
    const std::optional<Report> report = world_.reports().draw_report();
    if (report) world_.deliver(*report);
  } else {
    const std::optional<InputKind> input = world_.reports().draw_input();
    if (input) world_.operate(*input);
  }
}

ProtocolRules rules_of(Rng& rng) {
  constexpr std::array<const char*, 3> kPolicies{"fifo", "srtf", "las"};
  ProtocolRules rules;
  rules.network.loss = 0.1 * rng.uniform();
  rules.network.doubling = 0.1 * rng.uniform();
  rules.network.delay_max = Duration::milliseconds(1 + static_cast<std::int64_t>(rng.below(2000)));
  rules.network.stray = 0.05 * rng.uniform();
  rules.crash = 0.01 * rng.uniform();
  rules.ignores_term = 0.5 * rng.uniform();
  rules.drift = static_cast<std::int32_t>(rng.below(200));
  rules.policy = kPolicies[rng.below(kPolicies.size())];
  return rules;
}

/// One seed in five has a disk that is slow at times, and full at others.
bool bad_disk(std::uint64_t seed) { return seed % 5 == 4; }

/// One seed in seven has maintenance windows.
bool maintained(std::uint64_t seed) { return seed % 7 == 3; }

/// One seed in five has tenants, and quotas that change while their jobs run.
bool tenanted(std::uint64_t seed) { return seed % 5 == 3; }

/// In one seed of four, executors and agents send reports that contradict what is known.
bool lying(std::uint64_t seed) { return seed % 8 == 3 || seed % 8 == 6; }

/// One seed in four has a service that is updated and scaled time and again.
bool serves(std::uint64_t seed) { return seed % 4 == 2 && !tenanted(seed); }

/// Whether a resource manager lends some of the nodes of a seed.
bool lends(std::uint64_t seed, Lenders lenders) {
  return lenders == Lenders::kAll || (lenders == Lenders::kSome && seed % 3 == 2);
}

/// No job needs more nodes than the cluster or its manager has alone: holds are asked for by the
/// nodes that a job needs in all.
void fit(ProtocolJob& job, const std::optional<ManagerRules>& manager, std::size_t nodes) {
  if (!manager) return;
  const std::size_t lent = manager->nodes;
  const auto most = static_cast<std::uint32_t>(8 * std::max(lent, nodes - lent));
  job.devices = std::min(job.devices, most);
  job.devices_min = std::min(job.devices_min, job.devices);
}

/// Begins the service of a world, scales it, or asks for another revision of it.
void change_service(ProtocolService& service, Rng& rng) {
  const auto replicas = 1 + static_cast<std::uint32_t>(rng.below(3));
  service.begin(replicas);
  service.judge(rng.below(4) == 0 ? CanaryVerdict::Of::kGiveUp : CanaryVerdict::Of::kPromote);
  if (rng.below(2) == 0) {
    return service.scale(static_cast<std::uint32_t>(rng.below(ProtocolService::kScaledMost + 1)));
  }
  RolloutTerms terms;
  if (rng.below(2) == 0) {
    terms = {.surge = static_cast<std::uint32_t>(rng.below(2)), .unavailable = 1};
  }
  if (rng.below(2) == 0 && replicas + terms.surge > 1) terms.canary = {100, 5000};
  service.update(replicas, terms,
                 rng.below(3) == 0 ? ProtocolReplica::kFails : ProtocolReplica::kServes);
}

const char* draw_fair_policy(Rng& rng) {
  constexpr std::array<const char*, 3> kFair{"capacity:min_run=0 s", "fifo:quotas=held",
                                             "hardware-aware:min_run=0 s,full_interval=10 s"};
  return kFair[rng.below(kFair.size())];
}

/// One seed in three has jobs that resize, jobs that share accelerators, or caps of power.
struct Variety {
  bool elastic = false;
  bool shared = false;
  bool capped = false;
};

Variety draw_variety(Rng& rng, std::uint64_t seed, ProtocolRules& rules) {
  if (seed % 3 != 1) return {};
  const Variety variety{rng.below(4) != 0, rng.below(2) == 0, rng.below(2) == 0};
  rules.power_limited = variety.capped;
  if (rng.below(2) == 0) rules.policy = "hardware-aware:min_run=0 s,full_interval=10 s";
  return variety;
}

/// Adds to a job what such seeds vary.
void vary(ProtocolJob& job, const Variety& variety, Rng& rng) {
  if (variety.elastic && rng.below(3) != 0) {
    job.devices = 4 * (1 + static_cast<std::uint32_t>(rng.below(8)));
    job.devices_min = std::min<std::uint32_t>(job.devices, 4);
    job.work = job.work * 3;
  } else if (variety.shared && rng.below(2) == 0) {
    job.devices = 1;
    job.share = static_cast<std::uint16_t>(100 * (1 + rng.below(9)));
  }
}

ProtocolJob draw_job(Rng& rng, std::size_t nodes) {
  constexpr std::array<RestartPolicy, 4> kPolicies{RestartPolicy::kWhenSafe, RestartPolicy::kAtOnce,
                                                   RestartPolicy::kAfterLease,
                                                   RestartPolicy::kNever};
  ProtocolJob job;
  job.restart = kPolicies[rng.below(rng.below(4) == 0 ? 4 : 3)];
  job.devices = rng.below(2) == 0 ? 1 + static_cast<std::uint32_t>(rng.below(8))
                                  : 8 * (1 + static_cast<std::uint32_t>(rng.below(nodes)));
  job.work = Duration::seconds(10 + static_cast<std::int64_t>(rng.below(90)));
  return job;
}

}  // namespace

Result<ProtocolSites> ProtocolSites::make(const Catalog& catalog) {
  ProtocolSites sites;
  for (std::size_t i = 0; i < sites.sites_.size(); ++i) {
    Result<std::unique_ptr<ProtocolSite>> site = ProtocolSite::make(catalog, kProtocolNodesMin + i);
    if (!site) return forward_error(site);
    sites.sites_[i] = *std::move(site);
  }
  return sites;
}

ProtocolRun run_protocol(const ProtocolSites& sites, std::uint64_t seed, Lenders lenders,
                         const ProtocolWorld::Trace& trace) {
  Rng rng = Rng::stream(seed, "protocol");
  const std::size_t nodes = kProtocolNodesMin + rng.below(4);
  ProtocolRules rules = rules_of(rng);
  Rng disk = Rng::stream(seed, "disk");
  if (bad_disk(seed)) rules.disk.slow_write = 0.2 * disk.uniform();
  Rng other = Rng::stream(seed, "variety");
  const Variety variety = draw_variety(other, seed, rules);
  Rng window = Rng::stream(seed, "maintenance");
  Rng lies = Rng::stream(seed, "lies");
  Rng quota = Rng::stream(seed, "tenants");
  Rng served = Rng::stream(seed, "services");
  if (tenanted(seed)) rules.policy = draw_fair_policy(quota);
  if (lends(seed, lenders)) {
    Rng holds = Rng::stream(seed, "holds");
    rules.manager = draw_manager(holds, static_cast<std::uint32_t>(nodes));
  }
  ProtocolWorld world(sites.of(nodes), rules, seed, trace);
  FaultInjector injector(world, seed);
  std::uint64_t jobs = 2 + rng.below(4);
  if (tenanted(seed)) jobs += 6;
  if (rules.manager) jobs += 4;
  const int steps = rules.manager ? 2 * kSteps : kSteps;
  for (int step = 0; step < steps && world.failure().empty(); ++step) {
    if (jobs > 0 && rng.below(10) == 0) {
      --jobs;
      ProtocolJob job = draw_job(rng, nodes);
      vary(job, variety, other);
      fit(job, rules.manager, nodes);
      if (tenanted(seed)) job.tenant = kTenants[quota.below(kTenants.size())];
      world.submit(job);
    }
    world.run(injector.pause(6000));
    if (!world.controller().lives() && rng.below(4) != 0) world.start_controller();
    injector.strike();
    if (bad_disk(seed) && disk.below(10) == 0) injector.fill_disk();
    if (variety.elastic && other.below(3) == 0) injector.resize();
    if (tenanted(seed) && (step == 0 || quota.below(10) == 0)) injector.set_quotas();
    if (lying(seed) && lies.below(2) == 0) injector.contradict();
    if (maintained(seed) && window.below(10) == 0) injector.plan_maintenance();
    if (variety.capped && other.below(10) == 0) injector.cap_power();
    if (serves(seed) && served.below(5) == 0) change_service(world.service(), served);
  }
  world.context().note("calm");
  world.make_calm();
  if (tenanted(seed)) world.operate(SetTenants{kNoQuotas});
  for (int minute = 0; minute < kCalmMinutes && world.failure().empty(); ++minute) {
    if (world.settled()) break;
    world.run(Duration::minutes(1));
    world.tend();
  }
  const DurableLog& log = world.disk().log();
  ProtocolRun run{world.failure(), log.history_hash(), injector.faults(),
                  world.controller().crashes(), log.events()};
  if (run.failure.empty() && !world.settled()) run.failure = "not settled: " + world.unsettled();
  return run;
}

}  // namespace orrery
