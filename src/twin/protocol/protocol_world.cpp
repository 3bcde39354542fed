#include "twin/protocol/protocol_world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace orrery {
namespace {

ControlSetup setup_of(const ProtocolSite& site, const ProtocolRules& rules) {
  const Result<Policy> policy = policy_named(rules.policy);
  ControlSetup setup = site.setup(policy ? *policy : Policy());
  setup.timing.lease = rules.lease;
  if (rules.power_limited) site.limit_power(setup);
  if (rules.manager) setup.nodes_begin = NodeHealth::kJoining;
  return setup;
}

}  // namespace

ProtocolWorld::ProtocolWorld(const ProtocolSite& site, const ProtocolRules& rules,
                             std::uint64_t seed, Trace trace)
    : setup_(setup_of(site, rules)),
      context_(rules, seed, std::move(trace)),
      cut_(site.topology().node_count()),
      reports_(context_),
      disk_(context_, {[this](std::span<const Event> events) {
                         clients_.note_durable(events);
                         service_.note_durable(events);
                       },
                       [this] { controller_.written(); }}),
      clients_(context_, disk_,
               {[this] { return controller_.lives() ? &state() : nullptr; },
                [this](const Input& input, ControlHost::Answered answered) {
                  controller_.handle(input, std::move(answered));
                },
                [this](JobId id, const ProtocolJob& job) { nodes_.ranks().know(id, job); }}),
      service_(context_,
               {[this] { return controller_.lives() ? &state() : nullptr; },
                [this](const Input& input, ControlHost::Answered answered) {
                  controller_.handle(input, std::move(answered));
                },
                [this](JobId id, const ProtocolJob& job) { nodes_.ranks().know(id, job); }}),
      promises_(context_, clients_),
      controller_(
          {setup_, context_, disk_, reports_, promises_,
           [this](const Order& order) { send(order); },
           [this](const ManagerOrder& order) { lent_->carry_out(order, *controller_.holds()); },
           [this](std::span<const Event> events) {
             if (lent_) lent_->note(events);
           },
           [this](std::uint64_t term) {
             if (lent_) lent_->begin();
             return lent_ ? std::optional(lent_->setup(term)) : std::nullopt;
           }}),
      nodes_({.cluster = kProtocolCluster,
              .nodes = site.topology().node_count(),
              .lent = rules.manager ? rules.manager->nodes : 0,
              .beat = rules.beat,
              .ignores_term = rules.ignores_term,
              .drift = rules.drift},
             seed,
             {context_.time(), [this](const Report& report) { send(report); },
              [this](const std::string& what) { context_.wrong(what); }}) {
  if (rules.manager) {
    lent_ = std::make_unique<LentFleet>(lent_parts(site.topology()), *rules.manager);
  }
  start_controller();
}

LentFleet::Parts ProtocolWorld::lent_parts(const Topology& topology) {
  return {.context = context_,
          .nodes = nodes_,
          .topology = topology,
          .reachable = [this](NodeId node) { return !cut_[node.value()]; },
          .term = [this] { return controller_.term(); },
          .admit = [this](NodeId node,
                          const AgentHold& agent) { return controller_.admit(node, agent); },
          .link = [this] { return controller_.holds(); },
          .ending = [this](NodeId node) { controller_.end_hold(node); },
          .report = [this](const ManagerReport& report) { controller_.deliver(report); },
          .fence = [this](NodeId node) { operate(FenceNode{node}); }};
}

void ProtocolWorld::send(const Report& report) {
  reports_.remember(report);
  if (cut_[report.from.node.value()] || (lent_ && !lent_->hears(report.from))) return;
  context_.transmit([this, report] { deliver(report); });
}

void ProtocolWorld::deliver(const Report& report) {
  if (!lent_ || lent_->hears(report.from)) controller_.deliver(report);
}

void ProtocolWorld::send(const Order& order) {
  if (cut_[order.to.node.value()] || (lent_ && !lent_->reaches(order.to.node))) return;
  context_.transmit([this, order] { nodes_.deliver(order); });
}

void ProtocolWorld::run(Duration span) {
  VirtualTime& time = context_.time();
  const Instant until = time.now() + span;
  while (failure().empty()) {
    const Instant next = std::min({time.next(), nodes_.next_due(), controller_.next_due()});
    if (next > until) break;
    time.move_to(next);
    step();
  }
  time.move_to(until);
}

void ProtocolWorld::step() {
  VirtualTime& time = context_.time();
  if (time.next() <= time.now()) {
    time.run_next();
  } else if (nodes_.next_due() <= time.now()) {
    nodes_.fire_due();
  } else {
    controller_.advance(time.now());
  }
  if (!lent_) return;
  lent_->note_step();
  if (controller_.lives()) lent_->check(state(), *controller_.holds());
}

void ProtocolWorld::cap_power(std::optional<Watts> cap) {
  const Topology& topology = *setup_.topology;
  for (std::size_t at = 0; at < topology.power_domains().size(); ++at) {
    const PowerDomainId id = PowerDomainId::at(at);
    if (topology.power(id).kind == PowerKind::kSiteCap) operate(SetPowerCap{id, cap});
  }
}

void ProtocolWorld::contradict() {
  if (!controller_.lives() || state().jobs() == 0) return;
  const InputKind lie = reports_.draw_contradiction(state());
  const std::uint64_t term = controller_.started();
  const std::uint64_t before = disk_.appended();
  const std::size_t inputs = reports_.inputs();
  controller_.handle({context_.now(), lie, {}}, [this](const Answer& answer) {
    if (answer.status) context_.wrong("what cannot be was believed");
  });
  reports_.forget_after(inputs);  // it may become true later, so it is not repeated
  if (controller_.lives() && controller_.started() == term && disk_.appended() != before) {
    context_.wrong("something came of what cannot be");
  }
}

void ProtocolWorld::make_calm() {
  disk_.free();
  context_.make_reliable();
  for (std::size_t at = 0; at < nodes_.size(); ++at) {
    const NodeId id = NodeId::at(at);
    join(id);
    nodes_.power_on(id);
    nodes_.thaw_agent(id);
    for (const AttemptId& attempt : nodes_.keepers_on(id)) nodes_.thaw_keeper(id, attempt);
    nodes_.start_agent(id);
  }
  if (lent_) lent_->make_calm();
  start_controller();
  for (std::size_t at = 0; at < nodes_.size() && controller_.lives(); ++at) {
    const NodeRecord& node = state().node(NodeId::at(at));
    const bool drained =
        node.health == NodeHealth::kDraining || node.health == NodeHealth::kDrained;
    if (drained || node.drain) operate(ResumeNode{NodeId::at(at)});
    operate(SetSpare{NodeId::at(at), false});
  }
  if (setup_.power != nullptr) cap_power(std::nullopt);
}

void ProtocolWorld::tend() {
  if (lent_ && controller_.lives()) lent_->tend(state());
  if (controller_.lives()) service_.end();
}

/// The fleet link may know an attempt on a lent node until an agent comes there again, though
/// control knows from the manager that nothing of it is left.
bool ProtocolWorld::settled() const {
  if (lent_ && controller_.lives() && !lent_->unsettled(state(), *controller_.holds()).empty()) {
    return false;
  }
  return controller_.lives() && disk_.idle() && clients_.all_ended(state()) &&
         service_.ended(state()) && state().ghosts().empty() && nodes_.keepers() == 0 &&
         (lent_ || controller_.linked_attempts() == 0);
}

std::string ProtocolWorld::unsettled() const {
  std::string text = fmt::format("{} keepers, {} attempts linked", nodes_.keepers(),
                                 controller_.linked_attempts());
  if (!controller_.lives()) return text;
  if (lent_) text += "; " + lent_->unsettled(state(), *controller_.holds());
  for (const std::string& line : picture_of(state())) text += "; " + line;
  return text;
}

}  // namespace orrery
