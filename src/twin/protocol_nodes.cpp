#include "twin/protocol_nodes.hpp"

#include <fmt/format.h>

#include <bit>

namespace orrery {
namespace {

constexpr std::int64_t kClockUnit = 10'000;
constexpr Duration kOnNode = Duration::milliseconds(1);  ///< a message between its processes
constexpr Duration kRankStart = Duration::seconds(1);
constexpr Duration kEffects = Duration::seconds(20);  ///< between two of a rank
constexpr Duration kMending = Duration::seconds(20);

std::string text(const AttemptId& id) {
  return fmt::format("attempt {} of job {}", id.attempt, id.job.value());
}

}  // namespace

ProtocolNodes::ProtocolNodes(const Setup& setup, std::uint64_t seed, Outside outside)
    : setup_(setup),
      outside_(std::move(outside)),
      rng_(Rng::stream(seed, "nodes")),
      nodes_(setup.nodes) {
  const auto spread = static_cast<std::uint64_t>(2 * setup.drift + 1);
  for (std::size_t at = 0; at < nodes_.size(); ++at) {
    Node& each = nodes_[at];
    each.rate = kClockUnit + static_cast<std::int64_t>(rng_.below(spread)) - setup.drift;
    each.booted = outside_.time.now();
    each.clock_at_boot = Instant() + Duration::seconds(static_cast<std::int64_t>(rng_.below(1000)));
    start_agent(NodeId::at(at));
  }
}

// --- Clocks and timers --------------------------------------------------------------------------

Instant ProtocolNodes::clock(const Node& node) const {
  const std::int64_t passed = (outside_.time.now() - node.booted).count_ns();
  return node.clock_at_boot + Duration::nanoseconds(passed / kClockUnit * node.rate +
                                                    passed % kClockUnit * node.rate / kClockUnit);
}

Instant ProtocolNodes::when(const Node& node, Instant at) {
  const std::int64_t shown = (at - node.clock_at_boot).count_ns();
  if (shown > (Duration::hours(24) * 365).count_ns()) return Instant::max();
  const std::int64_t whole = shown / node.rate;
  const std::int64_t rest = shown % node.rate;
  const std::int64_t passed = whole * kClockUnit + (rest * kClockUnit + node.rate - 1) / node.rate;
  return node.booted + Duration::nanoseconds(passed);
}

template <class Visit>
void ProtocolNodes::for_each_timer(Visit&& visit) {
  for (std::size_t at = 0; at < nodes_.size(); ++at) {
    const NodeId id = NodeId::at(at);
    Node& each = nodes_[at];
    if (each.agent && !each.frozen) {
      visit(when(each, each.agent->next_due()), id, std::optional<AttemptId>());
    }
    for (const auto& [attempt, host] : each.keepers) {
      if (!host.frozen) visit(when(each, host.keeper.next_due()), id, std::optional(attempt));
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
  if (at.agent || !at.powered) return;
  at.agent.emplace(AgentSetup{.cluster = setup_.cluster,
                              .identity = {id, at.boot, ++at.incarnation},
                              .beat = setup_.beat},
                   keepers_on(id), clock(at));
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

void ProtocolNodes::fail_rank(NodeId id, const AttemptId& attempt) {
  const KeeperHost* host = host_of(id, attempt);
  if (host == nullptr || host->processes.empty()) return;
  end_process(id, attempt, {host->processes.begin()->second.pid, 1});
}

void ProtocolNodes::report_fault(NodeId id, const HealthFault& fault) {
  reach_agent(id, [fault](Agent& agent, Instant now) { agent.on_fault(fault, now); });
}

void ProtocolNodes::power_off(NodeId id) {
  kill_agent(id);
  node(id).keepers.clear();
  node(id).powered = false;
}

void ProtocolNodes::power_on(NodeId id) {
  Node& at = node(id);
  if (at.powered) return;
  at.powered = true;
  ++at.boot;
  at.booted = outside_.time.now();
  at.clock_at_boot = Instant();
  start_agent(id);
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
  tell(*at.agent, clock(at));
  drain_agent(id);
}

void ProtocolNodes::reach_keeper(NodeId id, const AttemptId& attempt, const ToKeeper& tell) {
  KeeperHost* host = host_of(id, attempt);
  if (host == nullptr) return;
  if (host->frozen) {
    host->inbox.emplace_back([this, id, attempt, tell] { reach_keeper(id, attempt, tell); });
    return;
  }
  tell(host->keeper, clock(node(id)));
  drain_keeper(id, attempt);
}

void ProtocolNodes::deliver(const Order& order) {
  reach_agent(order.to.node, [order](Agent& agent, Instant now) { agent.on_order(order, now); });
}

/// What a keeper says goes to the agent that lives when it is said, or to none.
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
      Keeper keeper(start->stamp, start->launch, clock(node(id)));
      const bool first =
          node(id).keepers.emplace(start->id, KeeperHost{std::move(keeper), {}, false, {}}).second;
      if (!first) outside_.wrong("two keepers of " + text(start->id));
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
      begin_mending(id);
    }
  }
}

void ProtocolNodes::begin_mending(NodeId id) {
  const std::pair by(node(id).boot, node(id).incarnation);
  outside_.time.after(kMending, [this, id, by] {
    if (std::pair(node(id).boot, node(id).incarnation) != by) return;
    reach_agent(id, [](Agent& agent, Instant now) { agent.on_mended(now); });
  });
}

void ProtocolNodes::drain_keeper(NodeId id, const AttemptId& attempt) {
  KeeperHost* host = host_of(id, attempt);
  if (host == nullptr) return;
  for (const KeeperEffect& effect : host->keeper.take()) {
    if (const auto* start = std::get_if<StartProcesses>(&effect)) {
      start_processes(id, *start);
    } else if (const auto* signal = std::get_if<SignalProcesses>(&effect)) {
      signal_processes(id, attempt, *signal);
    } else if (const auto* report = std::get_if<AttemptReport>(&effect)) {
      tell_agent(
          id, [state = *report](Agent& agent, Instant now) { agent.on_keeper_report(state, now); });
    } else if (std::holds_alternative<ExitKeeper>(effect)) {
      if (!host->processes.empty()) outside_.wrong("a keeper left its processes alone");
      kill_keeper(id, attempt);
      return;
    }
  }
}

// --- Processes ----------------------------------------------------------------------------------

void ProtocolNodes::check_start(NodeId id, const StartProcesses& start) {
  const AttemptId& attempt = start.token.id;
  std::uint64_t devices = 0;
  for (const RankShare& share : start.shares) devices |= share.devices;
  const bool fenced = jobs_.at(attempt.job).restart == RestartPolicy::kAtOnce;
  for (std::size_t at = 0; at < nodes_.size(); ++at) {
    for (const auto& [other, host] : nodes_[at].keepers) {
      if (other == attempt || host.processes.empty()) continue;
      if (other.job == attempt.job && !fenced) {
        outside_.wrong(fmt::format("{} starts on node {} beside {} on node {}", text(attempt),
                                   id.value(), text(other), at));
      }
      for (const auto& [slot, process] : host.processes) {
        if (NodeId::at(at) != id || (devices >> slot.device & 1) == 0) continue;
        outside_.wrong(fmt::format("{} starts on accelerator {} of node {}, which {} has",
                                   text(attempt), slot.device, at, text(other)));
      }
    }
  }
}

void ProtocolNodes::start_processes(NodeId id, const StartProcesses& start) {
  check_start(id, start);
  for (const RankShare& share : start.shares) {
    for (std::uint64_t left = share.devices; left != 0; left &= left - 1) {
      start_process(id, start.token,
                    {share.gang, static_cast<std::uint32_t>(std::countr_zero(left))});
    }
  }
}

/// One that runs already takes part in the newer epoch.
void ProtocolNodes::start_process(NodeId id, const FenceToken& token, const RankSlot& slot) {
  const AttemptId attempt = token.id;
  const auto [at, added] = host_of(id, attempt)->processes.try_emplace(slot);
  if (added) at->second = {++pids_, rng_.uniform() < setup_.ignores_term};
  const std::uint64_t pid = at->second.pid;
  outside_.time.after(kRankStart, [this, id, attempt, pid, up = ProcessUp{slot, token.epoch}] {
    if (!find_process(id, attempt, pid)) return;
    reach_keeper(id, attempt, [up](Keeper& keeper, Instant now) { keeper.on_process_up(up, now); });
  });
  if (!added) return;
  outside_.time.after(jobs_.at(attempt.job).work,
                      [this, id, attempt, pid] { end_process(id, attempt, {pid, 0}); });
  have_effect(id, token, pid);
}

/// Now and then each process writes something through the fence of its job.
void ProtocolNodes::have_effect(NodeId id, const FenceToken& token, std::uint64_t pid) {
  outside_.time.after(kEffects, [this, id, token, pid] {
    if (!find_process(id, token.id, pid)) return;
    Fence& fence = fences_.try_emplace(token.id.job, token.id.job).first->second;
    if (!fence.admit(token)) {
      ++fenced_;
      if (jobs_.at(token.id.job).restart != RestartPolicy::kAtOnce) {
        outside_.wrong(text(token.id) + " works on after its successor did");
      }
    }
    have_effect(id, token, pid);
  });
}

std::optional<RankSlot> ProtocolNodes::find_process(NodeId id, const AttemptId& attempt,
                                                    std::uint64_t pid) {
  const KeeperHost* host = host_of(id, attempt);
  if (host == nullptr) return std::nullopt;
  for (const auto& [slot, process] : host->processes) {
    if (process.pid == pid) return slot;
  }
  return std::nullopt;
}

void ProtocolNodes::end_process(NodeId id, const AttemptId& attempt, const Ending& ending) {
  const std::optional<RankSlot> slot = find_process(id, attempt, ending.pid);
  if (!slot) return;
  host_of(id, attempt)->processes.erase(*slot);
  reach_keeper(id, attempt,
               [exit = ProcessExit{*slot, ending.status}](Keeper& keeper, Instant now) {
                 keeper.on_process_exit(exit, now);
               });
}

void ProtocolNodes::signal_processes(NodeId id, const AttemptId& attempt,
                                     const SignalProcesses& signal) {
  const KeeperHost* host = host_of(id, attempt);
  const bool term = signal.signal == ProcessSignal::kTerm;
  for (const RankSlot& slot : signal.slots) {
    const auto at = host->processes.find(slot);
    if (at == host->processes.end() || (term && at->second.ignores_term)) continue;
    outside_.time.after(term ? Duration::seconds(2) : Duration::milliseconds(100),
                        [this, id, attempt, ending = Ending{at->second.pid, term ? 143 : 137}] {
                          end_process(id, attempt, ending);
                        });
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

std::size_t ProtocolNodes::processes(const AttemptId& attempt) const {
  std::size_t sum = 0;
  for (const Node& each : nodes_) {
    const auto at = each.keepers.find(attempt);
    if (at != each.keepers.end()) sum += at->second.processes.size();
  }
  return sum;
}

}  // namespace orrery
