#include "twin/protocol_world.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "agent/launch_plan.hpp"
#include "base/assert.hpp"
#include "base/document.hpp"
#include "fleet/builder.hpp"
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
    if (controller_ && !writing()) {
      next = std::min({next, controller_->link->next_due(), controller_->core.wake()});
    }
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
  } else if (controller_->link->next_due() <= now) {
    controller_->link->advance(now);
    drain_link();
  } else {
    handle({now, Tick{}, {}});
  }
}

// --- The controller -----------------------------------------------------------------------------

void ProtocolWorld::kill_controller(const std::string& where) {
  if (!controller_) return;
  note("the controller dies " + where);
  if (unwritten_ && chance(0.5)) {
    // All of it was there, and nobody was told.
    log_.commit(unwritten_->at, unwritten_->events);
    note_submitted(unwritten_->events);
  } else if (unwritten_) {
    log_.tear(unwritten_->at, unwritten_->events, rng_);
    expected_.reset();
  }
  unwritten_.reset();
  if (expected_) *expected_ = picture();
  controller_.reset();
  ++crashes_;
}

void ProtocolWorld::start_controller() {
  if (controller_) return;
  const Result<std::vector<TimedEvent>> events = log_.recover();
  if (!events) return wrong("the log cannot be read: " + events.error().text());
  controller_ = std::make_unique<Controller>(setup_);
  for (const TimedEvent& event : *events) controller_->core.replay(event.at, event.what);
  controller_->core.resume();
  if (expected_ && *expected_ != picture()) {
    wrong("a restart finds another state than was durable");
  }
  expected_.emplace();
  ++controllers_;
  note(fmt::format("controller {} starts with {} events", controllers_, events->size()));
  check_jobs();
  link_anew();
}

/// What control wanted done and may not have been done is said again.
void ProtocolWorld::link_anew() {
  LinkSetup setup{.cluster = kCluster, .term = controllers_};
  setup.heartbeats.interval = rules_.beat;
  setup.heartbeats.grace = rules_.beat * 6;
  for (std::size_t at = 0; at < nodes_.size(); ++at) {
    setup.boots.push_back(state().node(NodeId::at(at)).boot);
  }
  controller_->link.emplace(setup, known_attempts(state()), time_.now());
  for (std::size_t at = 0; at < nodes_.size(); ++at) {
    if (state().node(NodeId::at(at)).health != NodeHealth::kRepairing) continue;
    controller_->link->repair({NodeId::at(at), FaultLayer::kHost}, time_.now());
  }
  drain_link();
}

/// The points where it may die: before the input, in the write of its events, after it.
void ProtocolWorld::handle(const Input& input, Answered answered) {
  if (!controller_) return;
  ORRERY_ASSERT(!writing(), "one input after the other");
  if (chance(rules_.crash)) return kill_controller("between two inputs");
  const Outcome& outcome = controller_->core.handle(input);
  if (!outcome.events.empty() && chance(rules_.crash)) {
    log_.tear(input.at, outcome.events, rng_);
    expected_.reset();
    return kill_controller("writing its log");
  }
  unwritten_ = {input.at, outcome.events, outcome.actions, outcome.answer, std::move(answered), {}};
  ++writes_;
  const bool slow = !outcome.events.empty() && rules_.slow_write > 0 && chance(rules_.slow_write);
  if (!slow) return written();
  note("the disk is slow");
  const auto most = static_cast<std::uint64_t>(rules_.write_max.count_ns());
  time_.after(Duration::nanoseconds(static_cast<std::int64_t>(rng_.below(most))),
              [this, write = writes_] {
                if (writing() && write == writes_) written();
              });
}

void ProtocolWorld::written() {
  Unwritten done = *std::exchange(unwritten_, std::nullopt);
  log_.commit(done.at, done.events);
  note_submitted(done.events);
  if (!done.events.empty()) check_jobs();
  if (chance(rules_.crash)) return kill_controller("before it acts");
  for (const Action& action : done.actions) carry_out(action);
  if (done.answered) done.answered(done.answer);
  drain_link();
  for (VirtualTime::Event& event : done.then) when_free(std::move(event));
}

void ProtocolWorld::when_free(VirtualTime::Event event) {
  if (!controller_) return;
  if (writing()) {
    unwritten_->then.push_back(std::move(event));
  } else {
    event();
  }
}

void ProtocolWorld::carry_out(const Action& action) {
  FleetLink& link = *controller_->link;
  const Instant now = time_.now();
  if (const auto* start = std::get_if<StartRanks>(&action)) {
    const Job& job = state().job(start->job);
    if (!holds_devices(job.phase) || job.attempt != start->attempt) return;
    link.start(*start, launch_plan(state(), start->job), now);
  } else if (const auto* stop = std::get_if<StopRanks>(&action)) {
    link.stop(*stop, now);
  } else if (const auto* clock = std::get_if<ApplyClock>(&action)) {
    link.apply(*clock, now);
  } else if (const auto* repair = std::get_if<RepairNode>(&action)) {
    link.repair(*repair, now);
  } else if (std::holds_alternative<RunFullPass>(action)) {
    propose(full_pass(state(), controller_->passes, now));
  }
}

void ProtocolWorld::propose(const Proposal& proposal) {
  time_.after(kFullPass, [this, proposal, by = controllers_] {
    if (by != controllers_) return;
    when_free([this, proposal] { handle({time_.now(), proposal, {}}); });
  });
}

void ProtocolWorld::deliver(const Report& report) {
  when_free([this, report] {
    controller_->link->on_report(report, time_.now());
    drain_link();
  });
}

/// In order, so that an acknowledgement leaves only after what it acknowledges is durable.
void ProtocolWorld::drain_link() {
  while (controller_ && !writing()) {
    std::deque<LinkEffect>& effects = controller_->effects;
    if (effects.empty()) {
      for (LinkEffect& effect : controller_->link->take()) effects.push_back(std::move(effect));
    }
    if (effects.empty()) return;
    const LinkEffect effect = std::move(effects.front());
    effects.pop_front();
    if (const auto* order = std::get_if<Order>(&effect)) {
      if (cut_[order->to.node.value()]) continue;
      transmit([this, sent = *order] { nodes_.deliver(sent); });
      continue;
    }
    const InputKind& what = std::get<InputKind>(effect);
    const bool of_ranks = std::holds_alternative<RanksUp>(what) ||
                          std::holds_alternative<RanksEnded>(what) ||
                          std::holds_alternative<RanksGone>(what);
    if (of_ranks) heard_.push_back(what);
    handle({time_.now(), what, {}});
  }
}

// --- Clients ------------------------------------------------------------------------------------

Submission ProtocolWorld::submission_of(std::size_t n) const {
  const ProtocolJob& job = clients_[n].job;
  Submission submission;
  submission.restart = job.restart;
  submission.request.name = fmt::format("job-{}", n);
  submission.request.tenant = setup_.tenants->find("default").value_or(TenantId(0));
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
  transmit([this, n] { when_free([this, n] { refuse_or_submit(n); }); });
  time_.after(kAskAgain, [this, n] { ask_submit(n); });
}

void ProtocolWorld::refuse_or_submit(std::size_t n) {
  if (disk_full_) return note("a submission is refused, the disk is full");
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
    when_free([this, n] {
      handle({time_.now(), CancelJob{*clients_[n].made}, {}}, [this, n](const Answer&) {
        if (!chance(rules_.loss)) clients_[n].cancelled = true;
      });
    });
  });
  time_.after(kAskAgain, [this, n] { ask_cancel(n); });
}

void ProtocolWorld::operate(const InputKind& command) {
  when_free([this, command] { handle({time_.now(), command, {}}); });
}

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
