#include "twin/protocol/protocol_world.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.hpp"
#include "base/format/document.hpp"
#include "control/core/held_situation.hpp"
#include "fleet/spec/builder.hpp"
#include "perf/builtin_calibration.hpp"
#include "perf/calibration.hpp"

namespace orrery {
namespace {

constexpr std::uint64_t kCluster = 7;
constexpr Duration kAskAgain = Duration::seconds(7);  ///< of a client
constexpr Duration kFullPass = Duration::seconds(1);
constexpr std::size_t kRemembered = 64;
constexpr std::uint32_t kElasticStep = 4;  ///< accelerators, half a node

constexpr const char* kFleet = R"(apiVersion: orrery/v1
kind: Fleet
name: small
sites:
- name: lab
  power_cap: 1 MW
  halls:
  - name: hall
    pods:
    - name: pod
      racks:
      - count: {}
        nodes: [{{type: dgx-h100, count: 1}}]
)";

Policy policy_of(const std::string& name) {
  const Result<Policy> policy = policy_named(name);
  return policy ? *policy : Policy();
}

}  // namespace

// --- The site -----------------------------------------------------------------------------------

Result<std::unique_ptr<ProtocolSite>> ProtocolSite::make(const Catalog& catalog,
                                                         std::size_t nodes) {
  Result<Document> document =
      Document::parse(fmt::format(fmt::runtime(kFleet), nodes), "small.yaml");
  if (!document) return forward_error(document);
  Result<FleetSpec> spec = read_fleet_spec(*document);
  if (!spec) return forward_error(spec);
  Result<Topology> topology = build_topology(*spec, catalog);
  if (!topology) return forward_error(topology);
  Result<Calibration> calibration = Calibration::load(builtin_calibration(), {});
  if (!calibration) return forward_error(calibration);
  auto site = std::make_unique<ProtocolSite>(*std::move(topology));
  Result<FleetCosts> costs = FleetCosts::make({catalog, *calibration}, site->topology_, {});
  if (!costs) return forward_error(costs);
  site->costs_ = *std::move(costs);
  return site;
}

ProtocolSite::ProtocolSite(Topology topology)
    : topology_(std::move(topology)),
      tree_(topology_),
      power_(topology_),
      tenants_(default_tenant_tree(topology_)) {}

ControlSetup ProtocolSite::setup(const Policy& policy) const {
  ControlSetup setup;
  setup.topology = &topology_;
  setup.tree = &tree_;
  setup.tenants = &tenants_;
  setup.policy = policy;
  setup.timing.grace = Duration::seconds(10);
  return setup;
}

void ProtocolSite::limit_power(ControlSetup& setup) const {
  setup.power = &power_;
  setup.costs = &costs_;
}

// --- Time and network ---------------------------------------------------------------------------

ProtocolWorld::ProtocolWorld(const ProtocolSite& site, const ProtocolRules& rules,
                             std::uint64_t seed, Trace trace)
    : site_(site),
      rules_(rules),
      setup_(site.setup(policy_of(rules.policy))),
      rng_(Rng::stream(seed, "world")),
      trace_(std::move(trace)),
      cut_(site.topology().node_count()),
      nodes_({.cluster = kCluster,
              .nodes = site.topology().node_count(),
              .beat = rules.beat,
              .ignores_term = rules.ignores_term,
              .drift = rules.drift},
             seed,
             {time_,
              [this](const Report& report) {
                if (reports_.size() < kRemembered) {
                  reports_.push_back(report);
                } else {
                  reports_[rng_.below(kRemembered)] = report;
                }
                if (cut_[report.from.node.value()]) return;
                transmit([this, report] { deliver(report); });
              },
              [this](const std::string& what) { wrong(what); }}) {
  setup_.timing.lease = rules.lease;
  if (rules.power_limited) site.limit_power(setup_);
  start_controller();
}

void ProtocolWorld::wrong(const std::string& what) {
  if (!failure_.empty()) return;
  failure_ = time_.now().text() + ": " + what;
  note("BROKEN: " + what);
}

void ProtocolWorld::note(const std::string& what) {
  if (trace_) trace_(time_.now(), what);
}

Duration ProtocolWorld::delay() {
  const Duration most = chance(rules_.stray) ? Duration::seconds(30) : rules_.delay_max;
  return Duration::nanoseconds(
      1000 + static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(most.count_ns()))));
}

template <class Deliver>
void ProtocolWorld::transmit(Deliver deliver) {
  if (chance(rules_.doubling)) time_.after(delay(), deliver);
  if (!chance(rules_.loss)) time_.after(delay(), std::move(deliver));
}

void ProtocolWorld::run(Duration span) {
  const Instant until = time_.now() + span;
  while (failure_.empty()) {
    Instant next = std::min(time_.next(), nodes_.next_due());
    if (controller_) next = std::min(next, controller_->next_due());
    if (next > until) break;
    time_.move_to(next);
    step();
  }
  time_.move_to(until);
}

/// One thing that is due.
void ProtocolWorld::step() {
  const Instant now = time_.now();
  if (time_.next() <= now) {
    time_.run_next();
  } else if (nodes_.next_due() <= now) {
    nodes_.fire_due();
  } else if (!chance(rules_.crash)) {
    controller_->advance(now);
    die_if_doomed();
  } else {
    kill_controller("between two inputs");
  }
}

// --- The controller -----------------------------------------------------------------------------

void ProtocolWorld::kill_controller(const std::string& where) {
  if (!controller_) return;
  note("the controller dies " + where);
  if (writing_ > 0 && chance(0.5)) {
    // All writes under way reached the disk, but no client was answered.
    commit();
  } else if (!unwritten_.empty()) {
    log_.tear(unwritten_.front().at, unwritten_.front().events, rng_);
  }
  expected_.reset();
  if (unwritten_.empty()) expected_ = picture(state());
  unwritten_.clear();
  writing_ = 0;
  doomed_ = false;
  controller_.reset();
  ++crashes_;
}

void ProtocolWorld::start_controller() {
  if (controller_) return;
  const Result<std::vector<TimedEvent>> events = log_.recover();
  if (!events) return wrong("the log cannot be read: " + events.error().text());
  auto core = std::make_unique<Core>(setup_);
  for (const TimedEvent& event : *events) core->replay(event.at, event.what);
  core->resume();
  if (expected_ && *expected_ != picture(core->state())) {
    wrong("a restart finds another state than was durable");
  }
  accounts_.reset();
  if (setup_.policy.quotas == Quotas::kHeld) accounts_.emplace(core->state());
  ++controllers_;
  appended_ = 0;
  note(fmt::format("controller {} starts with {} events", controllers_, events->size()));
  const LinkSetup link{.cluster = kCluster,
                       .term = controllers_,
                       .heartbeats = {.interval = rules_.beat, .grace = rules_.beat * 6}};
  HostOutlet& outlet = *this;
  passes_.emplace(*setup_.tree);
  controller_ = std::make_unique<AgentHost>(std::move(core), AgentHost::Setup{.link = link}, outlet,
                                            time_.now());
  check_jobs();
  die_if_doomed();
}

/// A point where it may die: before an input.
void ProtocolWorld::handle(const Input& input, ControlHost::Answered answered) {
  if (!controller_) return;
  if (chance(rules_.crash)) return kill_controller("between two inputs");
  controller_->handle(input, std::move(answered));
  die_if_doomed();
}

void ProtocolWorld::note(const Input& input) {
  const InputKind& what = input.what;
  const bool of_ranks = std::holds_alternative<RanksUp>(what) ||
                        std::holds_alternative<RanksEnded>(what) ||
                        std::holds_alternative<RanksGone>(what);
  if (of_ranks) heard_.push_back(what);
}

std::uint64_t ProtocolWorld::append(Instant at, std::span<const Event> events) {
  unwritten_.push_back({at, {events.begin(), events.end()}});
  for (const Event& event : events) {
    if (!accounts_) break;
    if (const std::string broken = accounts_->take(event); !broken.empty()) wrong(broken);
  }
  if (controller_) check_jobs();
  if (chance(rules_.crash)) doomed_ = true;
  if (writing_ == 0) write();
  return ++appended_;
}

/// All that waits, in one write; what comes meanwhile waits for the next.
void ProtocolWorld::write() {
  if (unwritten_.empty()) return;
  writing_ = unwritten_.size();
  Duration takes;
  if (rules_.slow_write > 0 && chance(rules_.slow_write)) {
    note("the disk is slow");
    takes = Duration::nanoseconds(static_cast<std::int64_t>(
        rng_.below(static_cast<std::uint64_t>(rules_.write_max.count_ns()))));
  }
  time_.after(takes, [this, by = controllers_] {
    if (controller_ && by == controllers_) written();
  });
}

void ProtocolWorld::commit() {
  for (; writing_ > 0; --writing_) {
    const Unwritten input = std::move(unwritten_.front());
    unwritten_.pop_front();
    log_.commit(input.at, input.events);
    note_durable(input.events);
  }
}

void ProtocolWorld::written() {
  commit();
  if (chance(rules_.crash)) return kill_controller("before it acts");
  controller_->durable(appended_ - unwritten_.size());
  write();
  die_if_doomed();
}

/// In the midst of what it did.
void ProtocolWorld::die_if_doomed() {
  if (doomed_) kill_controller("writing its log");
}

void ProtocolWorld::send(const Order& order) {
  if (cut_[order.to.node.value()]) return;
  transmit([this, sent = order] { nodes_.deliver(sent); });
}

void ProtocolWorld::run_full_pass(Core& core, Instant now) {
  const auto held = core.hold(now);
  time_.after(kFullPass, [this, proposal = full_pass(*held, *passes_), by = controllers_] {
    if (by == controllers_) handle({time_.now(), proposal, {}});
  });
}

void ProtocolWorld::deliver(const Report& report) {
  if (!controller_) return;
  controller_->deliver(report, time_.now());
  die_if_doomed();
}

// --- Clients ------------------------------------------------------------------------------------

Submission ProtocolWorld::submission_of(std::size_t n) const {
  const ProtocolJob& job = clients_[n].job;
  Submission submission;
  submission.restart = job.restart;
  submission.request.name = fmt::format("job-{}", n);
  submission.request.tenant = *state().tenants().find(job.tenant);
  submission.request.estimate = job.work;
  submission.request.preemptible = true;
  RoleRequest role;
  role.devices_max = job.devices;
  role.devices_min = job.devices_min == 0 ? job.devices : job.devices_min;
  for (std::uint32_t devices = role.devices_max; devices >= role.devices_min;) {
    GangRequest gang;
    gang.type = FleetTypeId(0);
    gang.devices = devices;
    gang.node_devices = std::min(devices, site_.topology().node_devices_max(gang.type));
    gang.share = job.share;
    const double speed = static_cast<double>(devices) / static_cast<double>(job.devices);
    role.options.push_back({gang, speed, std::nullopt});
    devices -= std::min(devices, kElasticStep);
  }
  submission.request.roles.push_back(std::move(role));
  return submission;
}

void ProtocolWorld::submit(const ProtocolJob& job) {
  clients_.push_back({.job = job});
  ask_submit(clients_.size() - 1);
}

void ProtocolWorld::ask_submit(std::size_t n) {
  if (clients_[n].answered) return;
  transmit([this, n] { refuse_or_submit(n); });
  time_.after(kAskAgain, [this, n] { ask_submit(n); });
}

void ProtocolWorld::refuse_or_submit(std::size_t n) {
  if (disk_full_) return note("a submission is refused, the disk is full");
  if (!controller_) return;
  const std::string& tenant = clients_[n].job.tenant;
  if (!state().tenants().find(tenant))
    return note("a submission is refused, there is no tenant " + tenant);
  handle({time_.now(), SubmitJob{submission_of(n)}, fmt::format("request-{}", n)},
         [this, n](const Answer& answer) {
           if (answer.status && !chance(rules_.loss)) clients_[n].answered = true;
         });
}

void ProtocolWorld::cancel(std::size_t n) {
  if (clients_[n].cancels) return;
  clients_[n].cancels = true;
  ask_cancel(n);
}

void ProtocolWorld::ask_cancel(std::size_t n) {
  if (clients_[n].cancelled) return;
  transmit([this, n] {
    if (!clients_[n].answered) return;
    handle({time_.now(), CancelJob{*clients_[n].made}, {}}, [this, n](const Answer&) {
      if (!chance(rules_.loss)) clients_[n].cancelled = true;
    });
  });
  time_.after(kAskAgain, [this, n] { ask_cancel(n); });
}

void ProtocolWorld::operate(const InputKind& command) { handle({time_.now(), command, {}}); }

void ProtocolWorld::cap_power(std::optional<Watts> cap) {
  for (std::size_t at = 0; at < site_.topology().power_domains().size(); ++at) {
    const PowerDomainId id = PowerDomainId::at(at);
    if (site_.topology().power(id).kind == PowerKind::kSiteCap) operate(SetPowerCap{id, cap});
  }
}

// --- Faults -------------------------------------------------------------------------------------

void ProtocolWorld::repeat_report() {
  if (!reports_.empty()) deliver(reports_[rng_.below(reports_.size())]);
}

void ProtocolWorld::repeat_input() {
  if (!heard_.empty()) operate(heard_[rng_.below(heard_.size())]);
}

void ProtocolWorld::make_calm() {
  free_disk();
  rules_ = {.beat = rules_.beat, .lease = rules_.lease, .policy = rules_.policy};
  for (std::size_t at = 0; at < nodes_.size(); ++at) {
    const NodeId id = NodeId::at(at);
    join(id);
    nodes_.power_on(id);
    nodes_.thaw_agent(id);
    for (const AttemptId& attempt : nodes_.keepers_on(id)) nodes_.thaw_keeper(id, attempt);
    nodes_.start_agent(id);
  }
  start_controller();
  for (std::size_t at = 0; at < nodes_.size() && controller_; ++at) {
    const NodeRecord& node = state().node(NodeId::at(at));
    const bool drained =
        node.health == NodeHealth::kDraining || node.health == NodeHealth::kDrained;
    if (drained || node.drain) operate(ResumeNode{NodeId::at(at)});
    operate(SetSpare{NodeId::at(at), false});
  }
  if (setup_.power != nullptr) cap_power(std::nullopt);
}

}  // namespace orrery
