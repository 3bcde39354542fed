#include "twin/protocol/protocol_nodes.hpp"

#include <fmt/format.h>

#include <algorithm>
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
    } else if (const auto* cap = std::get_if<CapClock>(&effect)) {
      cap_clock(id, attempt, cap->share);
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
  const bool fenced = jobs_.at(attempt.job).restart == RestartPolicy::kAtOnce;
  std::map<std::uint32_t, std::uint32_t> taken;  // of each accelerator, by others
  for (std::size_t at = 0; at < nodes_.size(); ++at) {
    for (const auto& [other, host] : nodes_[at].keepers) {
      if (other == attempt || host.processes.empty()) continue;
      if (other.job == attempt.job && !fenced) {
        outside_.wrong(fmt::format("{} starts on node {} beside {} on node {}", text(attempt),
                                   id.value(), text(other), at));
      }
      if (NodeId::at(at) != id) continue;
      for (const auto& [slot, process] : host.processes) taken[slot.device] += process.share;
    }
  }
  for (const RankShare& share : start.shares) {
    for (const auto& [device, others] : taken) {
      if ((share.devices >> device & 1) == 0 || others + share.share <= kWholeDevice) continue;
      outside_.wrong(fmt::format("{} starts on accelerator {} of node {}, which others have",
                                 text(attempt), device, id.value()));
    }
  }
}

void ProtocolNodes::start_processes(NodeId id, const StartProcesses& start) {
  check_start(id, start);
  for (const RankShare& share : start.shares) {
    for (std::uint64_t left = share.devices; left != 0; left &= left - 1) {
      const RankSlot slot{share.gang, static_cast<std::uint32_t>(std::countr_zero(left))};
      if (std::binary_search(start.fresh.begin(), start.fresh.end(), slot)) {
        start_process(id, start.token.id, slot, share.share);
      }
      join_epoch(id, start.token, slot, share.clock);
    }
  }
}

void ProtocolNodes::start_process(NodeId id, const AttemptId& attempt, const RankSlot& slot,
                                  std::uint16_t share) {
  const std::uint64_t pid = ++pids_;
  const Process process{pid, rng_.uniform() < setup_.ignores_term, {}, share, 1};
  if (!host_of(id, attempt)->processes.emplace(slot, process).second) {
    outside_.wrong(text(attempt) + " has two processes on one accelerator");
  }
  outside_.time.after(jobs_.at(attempt.job).work,
                      [this, id, attempt, pid] { end_process(id, attempt, {pid, 0}); });
  have_effect(id, attempt, pid);
}

void ProtocolNodes::join_epoch(NodeId id, const FenceToken& token, const RankSlot& slot,
                               double clock) {
  const AttemptId attempt = token.id;
  Processes& processes = host_of(id, attempt)->processes;
  const auto at = processes.find(slot);
  if (at == processes.end()) return;
  at->second.token = token;
  at->second.clock = clock;
  const std::uint64_t pid = at->second.pid;
  outside_.time.after(kRankStart, [this, id, attempt, pid, up = ProcessUp{slot, token.epoch}] {
    if (find_process(id, attempt, pid) == nullptr) return;
    reach_keeper(id, attempt, [up](Keeper& keeper, Instant now) { keeper.on_process_up(up, now); });
  });
}

void ProtocolNodes::cap_clock(NodeId id, const AttemptId& attempt, const RankShare& share) {
  for (auto& [slot, process] : host_of(id, attempt)->processes) {
    const bool of_share = slot.gang == share.gang && (share.devices >> slot.device & 1) != 0;
    if (of_share) process.clock = share.clock;
  }
}

/// From time to time each process writes something through the fence of its job. Epochs of an
/// attempt may overlap while a rank leaves: its successors' rendezvous excludes it.
void ProtocolNodes::have_effect(NodeId id, const AttemptId& attempt, std::uint64_t pid) {
  outside_.time.after(kEffects, [this, id, attempt, pid] {
    const auto* process = find_process(id, attempt, pid);
    if (process == nullptr) return;
    Fence& fence = fences_.try_emplace(attempt.job, attempt.job).first->second;
    if (!fence.admit(process->second.token)) {
      ++fenced_;
      const bool older = attempt < fence.newest().id;
      if (older && jobs_.at(attempt.job).restart != RestartPolicy::kAtOnce) {
        outside_.wrong(text(attempt) + " works on after its successor did");
      }
    }
    have_effect(id, attempt, pid);
  });
}

ProtocolNodes::Processes::value_type* ProtocolNodes::find_process(NodeId id,
                                                                  const AttemptId& attempt,
                                                                  std::uint64_t pid) {
  KeeperHost* host = host_of(id, attempt);
  if (host == nullptr) return nullptr;
  for (Processes::value_type& each : host->processes) {
    if (each.second.pid == pid) return &each;
  }
  return nullptr;
}

void ProtocolNodes::end_process(NodeId id, const AttemptId& attempt, const Ending& ending) {
  const auto* process = find_process(id, attempt, ending.pid);
  if (process == nullptr) return;
  const RankSlot slot = process->first;
  host_of(id, attempt)->processes.erase(slot);
  reach_keeper(id, attempt, [exit = ProcessExit{slot, ending.status}](Keeper& keeper, Instant now) {
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

double ProtocolNodes::clock(const AttemptId& attempt) const {
  double least = 1;
  for (const Node& each : nodes_) {
    const auto at = each.keepers.find(attempt);
    if (at == each.keepers.end()) continue;
    for (const auto& [slot, process] : at->second.processes) {
      least = std::min(least, process.clock);
    }
  }
  return least;
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
