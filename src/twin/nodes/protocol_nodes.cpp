#include "twin/nodes/protocol_nodes.hpp"

#include <algorithm>

namespace orrery {
namespace {

constexpr std::int64_t kClockUnit = 10'000;
constexpr Duration kOnNode = Duration::milliseconds(1);  ///< a message between its processes
constexpr Duration kMending = Duration::seconds(20);

}  // namespace

ProtocolNodes::ProtocolNodes(const Setup& setup, std::uint64_t seed, Outside outside)
    : setup_(setup),
      outside_(std::move(outside)),
      rng_(Rng::stream(seed, "nodes")),
      processes_(
          setup.ignores_term, rng_,
          {.time = outside_.time,
           .up =
               [this](const KeeperAt& at, const ProcessUp& up) {
                 reach_keeper(at.node, at.attempt,
                              [up](Keeper& keeper, Instant now) { keeper.on_process_up(up, now); });
               },
           .exit =
               [this](const KeeperAt& at, const ProcessExit& exit) {
                 reach_keeper(at.node, at.attempt, [exit](Keeper& keeper, Instant now) {
                   keeper.on_process_exit(exit, now);
                 });
               },
           .replica =
               [this](const KeeperAt& at, const FenceToken& token, const ReplicaReport& report) {
                 reach_keeper(at.node, at.attempt, [token, report](Keeper& keeper, Instant) {
                   keeper.on_replica(token, report);
                 });
               },
           .wrong = outside_.wrong}) {
  const auto spread = static_cast<std::uint64_t>(2 * setup.drift + 1);
  nodes_.reserve(setup.nodes);
  for (std::size_t at = 0; at < setup.nodes; ++at) {
    const std::int64_t rate =
        kClockUnit + static_cast<std::int64_t>(rng_.below(spread)) - setup.drift;
    const Instant shown =
        Instant() + Duration::seconds(static_cast<std::int64_t>(rng_.below(1000)));
    nodes_.push_back({.clock = NodeClock(rate, shown, outside_.time.now()),
                      .hosted = at + setup.lent < setup.nodes});
    start_agent(NodeId::at(at));
  }
}

// --- Clocks and timers --------------------------------------------------------------------------

Instant NodeClock::shows(Instant now) const {
  const std::int64_t passed = (now - since_).count_ns();
  return shown_ + Duration::nanoseconds(passed / kClockUnit * rate_ +
                                        passed % kClockUnit * rate_ / kClockUnit);
}

Instant NodeClock::when_shows(Instant at) const {
  const std::int64_t shown = (at - shown_).count_ns();
  if (shown > (Duration::hours(24) * 365).count_ns()) return Instant::max();
  const std::int64_t whole = shown / rate_;
  const std::int64_t rest = shown % rate_;
  const std::int64_t passed = whole * kClockUnit + (rest * kClockUnit + rate_ - 1) / rate_;
  return since_ + Duration::nanoseconds(passed);
}

template <class Visit>
void ProtocolNodes::for_each_timer(Visit&& visit) {
  for (std::size_t at = 0; at < nodes_.size(); ++at) {
    const NodeId id = NodeId::at(at);
    Node& each = nodes_[at];
    if (each.agent && !each.frozen) {
      visit(each.clock.when_shows(each.agent->next_due()), id, std::optional<AttemptId>());
    }
    for (const auto& [attempt, host] : each.keepers) {
      if (!host.frozen)
        visit(each.clock.when_shows(host.keeper.next_due()), id, std::optional(attempt));
    }
  }
}

Instant ProtocolNodes::next_due() {
  Instant next = Instant::max();
  for_each_timer([&](Instant due, NodeId, const auto&) { next = std::min(next, due); });
  return next;
}

void ProtocolNodes::fire_due() {
  std::vector<std::pair<NodeId, std::optional<AttemptId>>> due;
  for_each_timer([&](Instant at, NodeId id, const std::optional<AttemptId>& attempt) {
    if (at <= outside_.time.now()) due.emplace_back(id, attempt);
  });
  for (const auto& [id, attempt] : due) {
    if (attempt) {
      reach_keeper(id, *attempt, [](Keeper& keeper, Instant now) { keeper.on_timer(now); });
    } else {
      reach_agent(id, [](Agent& agent, Instant now) { agent.on_timer(now); });
    }
  }
}

// --- Faults -------------------------------------------------------------------------------------

void ProtocolNodes::kill_agent(NodeId id) {
  node(id).agent.reset();
  node(id).frozen = false;
  node(id).inbox.clear();
}

void ProtocolNodes::start_agent(NodeId id) {
  Node& at = node(id);
  if (at.agent || !at.powered || !at.hosted) return;
  at.agent.emplace(AgentSetup{.cluster = setup_.cluster,
                              .identity = {id, at.boot, ++at.incarnation},
                              .beat = setup_.beat},
                   keepers_on(id), at.clock.shows(outside_.time.now()));
  drain_agent(id);
}

void ProtocolNodes::freeze_agent(NodeId id) { node(id).frozen = node(id).agent.has_value(); }

void ProtocolNodes::thaw_agent(NodeId id) {
  node(id).frozen = false;
  const Inbox inbox = std::exchange(node(id).inbox, {});
  for (const VirtualTime::Event& event : inbox) event();
}

void ProtocolNodes::kill_keeper(NodeId id, const AttemptId& attempt) {
  if (node(id).keepers.erase(attempt) == 0) return;
  processes_.kill({id, attempt});
  tell_agent(id, [attempt](Agent& agent, Instant now) { agent.on_keeper_exit(attempt, now); });
}

void ProtocolNodes::freeze_keeper(NodeId id, const AttemptId& attempt) {
  if (KeeperHost* host = host_of(id, attempt)) host->frozen = true;
}

void ProtocolNodes::thaw_keeper(NodeId id, const AttemptId& attempt) {
  KeeperHost* host = host_of(id, attempt);
  if (host == nullptr) return;
  host->frozen = false;
  const Inbox inbox = std::exchange(host->inbox, {});
  for (const VirtualTime::Event& event : inbox) event();
}

void ProtocolNodes::report_fault(NodeId id, const HealthFault& fault) {
  reach_agent(id, [fault](Agent& agent, Instant now) { agent.on_fault(fault, now); });
}

void ProtocolNodes::power_off(NodeId id) {
  kill_agent(id);
  node(id).keepers.clear();
  processes_.kill_all(id);
  node(id).powered = false;
  const bool lent = id.value() + setup_.lent >= setup_.nodes;
  if (lent) node(id).lost_step = std::exchange(node(id).hosted, false);
}

void ProtocolNodes::power_on(NodeId id) {
  Node& at = node(id);
  if (at.powered) return;
  at.powered = true;
  ++at.boot;
  at.clock.restart(outside_.time.now());
  start_agent(id);
}

void ProtocolNodes::host(NodeId id, AgentMay may) {
  node(id).hosted = may == AgentMay::kStart;
  node(id).lost_step = false;
}

// --- Messages -----------------------------------------------------------------------------------

ProtocolNodes::KeeperHost* ProtocolNodes::host_of(NodeId id, const AttemptId& attempt) {
  const auto at = node(id).keepers.find(attempt);
  return at == node(id).keepers.end() ? nullptr : &at->second;
}

void ProtocolNodes::reach_agent(NodeId id, const ToAgent& tell) {
  Node& at = node(id);
  if (!at.agent) return;
  if (at.frozen) {
    at.inbox.emplace_back([this, id, tell] { reach_agent(id, tell); });
    return;
  }
  tell(*at.agent, at.clock.shows(outside_.time.now()));
  drain_agent(id);
}

void ProtocolNodes::reach_keeper(NodeId id, const AttemptId& attempt, const ToKeeper& tell) {
  KeeperHost* host = host_of(id, attempt);
  if (host == nullptr) return;
  if (host->frozen) {
    host->inbox.emplace_back([this, id, attempt, tell] { reach_keeper(id, attempt, tell); });
    return;
  }
  tell(host->keeper, node(id).clock.shows(outside_.time.now()));
  drain_keeper(id, attempt);
}

void ProtocolNodes::deliver(const Order& order) {
  reach_agent(order.to.node, [order](Agent& agent, Instant now) { agent.on_order(order, now); });
}

/// Messages of a keeper go to the agent that lives at that time, or are lost.
void ProtocolNodes::tell_agent(NodeId id, ToAgent tell) {
  const std::pair to(node(id).boot, node(id).incarnation);
  outside_.time.after(kOnNode, [this, id, to, tell = std::move(tell)] {
    if (std::pair(node(id).boot, node(id).incarnation) == to) reach_agent(id, tell);
  });
}

void ProtocolNodes::drain_agent(NodeId id) {
  for (const AgentEffect& effect : node(id).agent->take()) {
    if (const auto* report = std::get_if<Report>(&effect)) {
      outside_.send(*report);
    } else if (const auto* start = std::get_if<StartKeeper>(&effect)) {
      Keeper keeper(start->stamp, start->launch, node(id).clock.shows(outside_.time.now()));
      const bool first =
          node(id).keepers.emplace(start->id, KeeperHost{std::move(keeper), false, {}}).second;
      if (!first) outside_.wrong("two keepers of " + attempt_text(start->id));
      drain_keeper(id, start->id);
    } else if (const auto* told = std::get_if<TellKeeper>(&effect)) {
      const std::uint64_t boot = node(id).boot;
      outside_.time.after(kOnNode, [this, id, boot, told = *told] {
        if (node(id).boot != boot) return;
        reach_keeper(id, told.id, [order = told.order](Keeper& keeper, Instant now) {
          keeper.on_order(order, now);
        });
      });
    } else {
      const std::pair by(node(id).boot, node(id).incarnation);
      outside_.time.after(kMending, [this, id, by] {
        if (std::pair(node(id).boot, node(id).incarnation) != by) return;
        reach_agent(id, [](Agent& agent, Instant now) { agent.on_mended(now); });
      });
    }
  }
}

void ProtocolNodes::drain_keeper(NodeId id, const AttemptId& attempt) {
  KeeperHost* host = host_of(id, attempt);
  if (host == nullptr) return;
  for (const KeeperEffect& effect : host->keeper.take()) {
    if (const auto* start = std::get_if<StartProcesses>(&effect)) {
      processes_.start(id, *start);
    } else if (const auto* signal = std::get_if<SignalProcesses>(&effect)) {
      processes_.signal({id, attempt}, *signal);
    } else if (const auto* report = std::get_if<AttemptReport>(&effect)) {
      tell_agent(
          id, [state = *report](Agent& agent, Instant now) { agent.on_keeper_report(state, now); });
    } else if (const auto* cap = std::get_if<CapClock>(&effect)) {
      processes_.cap_clock({id, attempt}, cap->share);
    } else if (std::holds_alternative<ExitKeeper>(effect)) {
      if (processes_.has_any({id, attempt})) outside_.wrong("a keeper left its processes alone");
      kill_keeper(id, attempt);
      return;
    }
  }
}

// --- What is there ------------------------------------------------------------------------------

std::vector<AttemptId> ProtocolNodes::keepers_on(NodeId id) const {
  std::vector<AttemptId> found;
  found.reserve(nodes_[id.value()].keepers.size());
  for (const auto& [attempt, host] : nodes_[id.value()].keepers) found.push_back(attempt);
  return found;
}

std::size_t ProtocolNodes::keepers() const {
  std::size_t sum = 0;
  for (const Node& each : nodes_) sum += each.keepers.size();
  return sum;
}

}  // namespace orrery
