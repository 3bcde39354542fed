// agent/world_test.hpp - a small world for tests: nodes with processes, keepers and agents, a
// network that loses, duplicates and delays, and a minimal control.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <utility>
#include <vector>

#include "agent/agent.hpp"
#include "agent/fleet_link.hpp"
#include "agent/keeper.hpp"
#include "base/numbers/rng.hpp"

namespace orrery {

struct WorldRules {
  std::size_t nodes = 4;
  double loss = 0;      ///< probability that a message between controller and agent is lost
  double doubling = 0;  ///< probability that such a message is duplicated
  Duration delay_max = Duration::milliseconds(2);
  double stray = 0;         ///< share of messages that take up to 30 s
  double ignores_term = 0;  ///< share of processes that only SIGKILL ends
  double crash = 0;         ///< probability that the controller dies after an effect of its link
};

struct WorldJob {
  RestartPolicy restart = RestartPolicy::kWhenSafe;
  std::size_t width = 2;  ///< nodes, one device each
  Duration work = Duration::seconds(60);
  Lease lease;

  // Durable, as control keeps it.
  JobPhase phase = JobPhase::kQueued;
  std::uint32_t attempt = 0;
  bool done = false;
  std::vector<NodeId> nodes;                         ///< nodes of the attempt
  std::set<std::pair<std::uint32_t, NodeId>> holds;  ///< attempt, node
  std::map<std::uint32_t, int> ends;                 ///< RanksEnded that counted, by attempt
  std::uint32_t ups = 0;
};

class World {
 public:
  World(std::uint64_t seed, const WorldRules& rules)
      : rules_(rules), rng_(seed), nodes_(rules.nodes), health_(rules.nodes), boots_(rules.nodes) {
    for (std::size_t at = 0; at < rules.nodes; ++at) start_agent(NodeId::at(at));
    start_controller();
  }

  // --- Running ---

  JobId add(WorldJob job) {
    jobs.push_back(std::move(job));
    schedule_jobs();
    return JobId::at(jobs.size() - 1);
  }

  void run(Duration span) {
    const Instant until = now_ + span;
    while (true) {
      Instant next = queue_.empty() ? Instant::max() : queue_.top().at;
      for_each_due([&](Instant due, const auto&) { next = std::min(next, due); });
      if (next > until) break;
      now_ = std::max(now_, next);
      if (!queue_.empty() && queue_.top().at <= now_) {
        const std::function<void()> event = queue_.top().run;
        queue_.pop();
        event();
      } else {
        fire_timers();
      }
    }
    now_ = until;
  }

  void after(Duration delay, std::function<void()> event) {
    queue_.push({now_ + delay, ++sequence_, std::move(event)});
  }

  // --- Faults ---

  void kill_controller() {
    link_.reset();
    ++controllers_;
  }
  void start_controller() {
    std::vector<KnownAttempt> known;
    for (const WorldJob& job : jobs) know(job, known);
    LinkSetup setup{.cluster = 7, .term = ++controllers_, .boots = boots_};
    link_.emplace(setup, known, now_);
    health_.assign(nodes_.size(), NodeHealth::kReady);
    tick(controllers_);
  }
  [[nodiscard]] bool controller_lives() const { return link_.has_value(); }

  void kill_agent(NodeId id) {
    node(id).agent.reset();
    node(id).frozen = false;
    node(id).held.clear();
  }
  void start_agent(NodeId id) {
    Node& n = node(id);
    if (n.agent) return;
    std::vector<AttemptId> found;
    for (const auto& [attempt, host] : n.keepers) found.push_back(attempt);
    n.agent.emplace(AgentSetup{.cluster = 7, .identity = {id, n.boot, ++n.incarnation}}, found,
                    now_);
    drain_agent(id);
  }
  void kill_keeper(NodeId id, const AttemptId& attempt) {
    node(id).keepers.erase(attempt);
    tell_agent(id, [attempt](Agent& agent, Instant now) { agent.on_keeper_exit(attempt, now); });
  }
  void kill_process(NodeId id, const AttemptId& attempt, int status) {
    KeeperHost* host = host_of(id, attempt);
    if (host == nullptr || host->processes.empty()) return;
    end_process(id, attempt, host->processes.begin()->second.pid, status);
  }
  void reboot(NodeId id) {
    kill_agent(id);
    node(id).keepers.clear();
    ++node(id).boot;
  }
  void freeze(NodeId id) { node(id).frozen = node(id).agent.has_value(); }
  void thaw(NodeId id) {
    node(id).frozen = false;
    const std::vector<Order> held = std::exchange(node(id).held, {});
    for (const Order& order : held) deliver(order);
  }
  void cut(NodeId id) { node(id).cut = true; }
  void join(NodeId id) { node(id).cut = false; }
  void make_calm() {
    rules_ = {.nodes = rules_.nodes};
    for (std::size_t at = 0; at < nodes_.size(); ++at) {
      join(NodeId::at(at));
      thaw(NodeId::at(at));
      start_agent(NodeId::at(at));
    }
    if (!link_) start_controller();
  }

  // --- What is there ---

  [[nodiscard]] std::size_t processes(const AttemptId& attempt) const {
    std::size_t sum = 0;
    for (const Node& n : nodes_) {
      const auto at = n.keepers.find(attempt);
      if (at != n.keepers.end()) sum += at->second.processes.size();
    }
    return sum;
  }
  [[nodiscard]] std::size_t keepers() const {
    std::size_t sum = 0;
    for (const Node& n : nodes_) sum += n.keepers.size();
    return sum;
  }
  [[nodiscard]] std::vector<AttemptId> keepers_on(NodeId id) {
    std::vector<AttemptId> found;
    for (const auto& [attempt, host] : node(id).keepers) found.push_back(attempt);
    return found;
  }
  [[nodiscard]] FleetLink& link() { return *link_; }
  [[nodiscard]] NodeHealth health(NodeId id) const { return health_[id.value()]; }
  [[nodiscard]] Rng& rng() { return rng_; }

  std::vector<WorldJob> jobs;
  std::uint64_t starts = 0;        ///< processes started
  std::uint64_t twice = 0;         ///< starts beside a process of another attempt without a fence
  std::uint64_t refused = 0;       ///< effects of an older attempt
  std::uint64_t unknown_ends = 0;  ///< attempts that ended although control did not wait for them
  std::vector<InputKind> heard;    ///< inputs of control, if `record` is set
  bool record = false;

 private:
  struct Process {
    std::uint64_t pid = 0;
    bool ignores_term = false;
  };
  struct KeeperHost {
    Keeper keeper;
    std::map<RankSlot, Process> processes;
  };
  struct Node {
    std::uint64_t boot = 1;
    std::uint64_t incarnation = 0;
    bool frozen = false;
    bool cut = false;
    std::optional<Agent> agent;
    std::vector<Order> held;  ///< orders received while the agent is frozen
    std::map<AttemptId, KeeperHost> keepers;
  };
  struct Event {
    Instant at;
    std::uint64_t sequence = 0;
    std::function<void()> run;
    friend bool operator>(const Event& a, const Event& b) {
      return std::pair(a.at, a.sequence) > std::pair(b.at, b.sequence);
    }
  };

  Node& node(NodeId id) { return nodes_[id.value()]; }
  KeeperHost* host_of(NodeId id, const AttemptId& attempt) {
    const auto at = node(id).keepers.find(attempt);
    return at == node(id).keepers.end() ? nullptr : &at->second;
  }

  // --- Time ---

  template <class Visit>
  void for_each_due(Visit&& visit) {
    if (link_)
      visit(link_->next_due(), [this] {
        link_->advance(now_);
        drain_link();
      });
    for (std::size_t at = 0; at < nodes_.size(); ++at) {
      const NodeId id = NodeId::at(at);
      Node& n = node(id);
      if (n.agent && !n.frozen) {
        visit(n.agent->next_due(), [this, id] {
          node(id).agent->on_timer(now_);
          drain_agent(id);
        });
      }
      for (auto& [attempt, host] : n.keepers) {
        const AttemptId key = attempt;
        visit(host.keeper.next_due(), [this, id, key] {
          if (KeeperHost* due = host_of(id, key)) due->keeper.on_timer(now_);
          drain_keeper(id, key);
        });
      }
    }
  }

  void fire_timers() {
    std::vector<std::function<void()>> due;
    for_each_due([&](Instant at, const auto& fire) {
      if (at <= now_) due.emplace_back(fire);
    });
    for (const auto& fire : due) fire();
  }

  // --- Network ---

  Duration delay() {
    const bool stray = rng_.uniform() < rules_.stray;
    const Duration most = stray ? Duration::seconds(30) : rules_.delay_max;
    return Duration::nanoseconds(
        1000 + static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(most.count_ns()))));
  }
  template <class Deliver>
  void transmit(const Deliver& deliver) {
    if (rng_.uniform() >= rules_.loss) after(delay(), deliver);
    if (rng_.uniform() < rules_.doubling) after(delay(), deliver);
  }

  void deliver(const Order& order) {
    Node& n = node(order.to.node);
    if (!n.agent) return;
    if (n.frozen) {
      n.held.push_back(order);
      return;
    }
    n.agent->on_order(order, now_);
    drain_agent(order.to.node);
  }

  void deliver(const Report& report) {
    if (!link_) return;
    link_->deliver(report, now_);
    drain_link();
  }

  // --- Nodes ---

  template <class Tell>
  void tell_agent(NodeId id, const Tell& tell) {
    const std::uint64_t incarnation = node(id).incarnation;
    const std::uint64_t boot = node(id).boot;
    after(Duration::milliseconds(1), [this, id, incarnation, boot, tell] {
      Node& n = node(id);
      if (!n.agent || n.incarnation != incarnation || n.boot != boot) return;
      tell(*n.agent, now_);
      drain_agent(id);
    });
  }

  void drain_agent(NodeId id) {
    for (AgentEffect& effect : node(id).agent->take()) {
      if (const auto* report = std::get_if<Report>(&effect)) {
        if (!node(id).cut) transmit([this, sent = *report] { deliver(sent); });
      } else if (const auto* start = std::get_if<StartKeeper>(&effect)) {
        EXPECT_FALSE(node(id).keepers.contains(start->id)) << "one keeper an attempt";
        node(id).keepers.emplace(start->id,
                                 KeeperHost{Keeper(start->stamp, start->launch, now_), {}});
        drain_keeper(id, start->id);
      } else if (const auto* told = std::get_if<TellKeeper>(&effect)) {
        after(Duration::milliseconds(1), [this, id, told = *told] {
          if (KeeperHost* host = host_of(id, told.id)) host->keeper.on_order(told.order, now_);
          drain_keeper(id, told.id);
        });
      }
    }
  }

  void drain_keeper(NodeId id, const AttemptId& attempt) {
    KeeperHost* host = host_of(id, attempt);
    if (host == nullptr) return;
    for (KeeperEffect& effect : host->keeper.take()) {
      if (const auto* start = std::get_if<StartProcesses>(&effect)) {
        start_processes(id, *start);
      } else if (const auto* signal = std::get_if<SignalProcesses>(&effect)) {
        signal_processes(id, attempt, *signal);
      } else if (const auto* report = std::get_if<AttemptReport>(&effect)) {
        tell_agent(id, [state = *report](Agent& agent, Instant now) {
          agent.on_keeper_report(state, now);
        });
      } else if (std::holds_alternative<ExitKeeper>(effect)) {
        EXPECT_TRUE(host->processes.empty());
        kill_keeper(id, attempt);
        return;
      }
    }
  }

  void start_processes(NodeId id, const StartProcesses& start) {
    const AttemptId attempt = start.token.id;
    const WorldJob& job = jobs[attempt.job.value()];
    for (const Node& n : nodes_) {
      for (const auto& [other, host] : n.keepers) {
        const bool beside = other.job == attempt.job && other != attempt && !host.processes.empty();
        if (beside && job.restart != RestartPolicy::kAtOnce) ++twice;
      }
    }
    KeeperHost* host = host_of(id, attempt);
    for (const RankShare& share : start.shares) {
      const RankSlot slot{share.gang, static_cast<std::uint32_t>(std::countr_zero(share.devices))};
      if (host->processes.contains(slot)) continue;
      ++starts;
      const std::uint64_t pid = ++pids_;
      host->processes[slot] = {pid, rng_.uniform() < rules_.ignores_term};
      after(Duration::seconds(1),
            [this, id, attempt, pid, up = ProcessUp{slot, start.token.epoch}] {
              if (find_process(id, attempt, pid) == nullptr) return;
              host_of(id, attempt)->keeper.on_process_up(up, now_);
              drain_keeper(id, attempt);
            });
      after(job.work, [this, id, attempt, pid] { end_process(id, attempt, pid, 0); });
      have_effect(id, start.token, pid);
    }
  }

  /// Lets each process write something every five seconds, through the fence of its job.
  void have_effect(NodeId id, const FenceToken& token, std::uint64_t pid) {
    after(Duration::seconds(5), [this, id, token, pid] {
      if (find_process(id, token.id, pid) == nullptr) return;
      Fence& fence = fences_.try_emplace(token.id.job, token.id.job).first->second;
      if (!fence.admit(token)) ++refused;
      have_effect(id, token, pid);
    });
  }

  const RankSlot* find_process(NodeId id, const AttemptId& attempt, std::uint64_t pid) {
    KeeperHost* host = host_of(id, attempt);
    if (host == nullptr) return nullptr;
    for (const auto& [slot, process] : host->processes) {
      if (process.pid == pid) return &slot;
    }
    return nullptr;
  }

  void end_process(NodeId id, const AttemptId& attempt, std::uint64_t pid, int status) {
    const RankSlot* found = find_process(id, attempt, pid);
    if (found == nullptr) return;
    const RankSlot slot = *found;
    host_of(id, attempt)->processes.erase(slot);
    host_of(id, attempt)->keeper.on_process_exit({slot, status}, now_);
    drain_keeper(id, attempt);
  }

  void signal_processes(NodeId id, const AttemptId& attempt, const SignalProcesses& signal) {
    KeeperHost* host = host_of(id, attempt);
    const bool term = signal.signal == ProcessSignal::kTerm;
    for (const RankSlot& slot : signal.slots) {
      const auto at = host->processes.find(slot);
      if (at == host->processes.end() || (term && at->second.ignores_term)) continue;
      after(term ? Duration::seconds(2) : Duration::milliseconds(100),
            [this, id, attempt, pid = at->second.pid, status = term ? 143 : 137] {
              end_process(id, attempt, pid, status);
            });
    }
  }

  // --- The controller and a minimal control ---

  void tick(std::uint64_t controller) {
    if (!link_ || controller != controllers_) return;
    schedule_jobs();
    after(Duration::seconds(1), [this, controller] { tick(controller); });
  }

  void drain_link() {
    while (link_) {
      const std::vector<ExecutorEffect> effects = link_->take();
      if (effects.empty()) return;
      for (const ExecutorEffect& effect : effects) {
        if (rng_.uniform() < rules_.crash) return kill_controller();
        if (const auto* order = std::get_if<Order>(&effect)) {
          if (!node(order->to.node).cut) transmit([this, sent = *order] { deliver(sent); });
        } else {
          const InputKind& input = std::get<InputKind>(effect);
          if (record) heard.push_back(input);
          hear(input);
        }
      }
    }
  }

  /// Adds every attempt that holds a device, also one that a newer attempt has replaced.
  void know(const WorldJob& job, std::vector<KnownAttempt>& known) const {
    const auto id = JobId::at(static_cast<std::size_t>(&job - jobs.data()));
    std::map<std::uint32_t, std::vector<NodeId>> nodes;
    for (const auto& [attempt, held] : job.holds) nodes[attempt].push_back(held);
    for (const auto& [attempt, held] : nodes) {
      const bool goes_on = attempt == job.attempt && holds_devices(job.phase);
      known.push_back(
          {{id, attempt}, 0, goes_on ? job.phase : JobPhase::kStopping, plan_of(job, held)});
    }
  }

  [[nodiscard]] LaunchPlan plan_of(const WorldJob& job, const std::vector<NodeId>& nodes) const {
    LaunchPlan plan{.nodes = {}, .lease = job.lease, .grace = Duration::seconds(10)};
    const auto device = static_cast<std::size_t>(&job - jobs.data());
    for (std::size_t at = 0; at < nodes.size(); ++at) {
      plan.nodes.push_back(
          {.node = nodes[at],
           .shares = {{0, std::uint64_t{1} << device, {static_cast<std::uint32_t>(at)}, 1.0}},
           .boot = boots_[nodes[at].value()]});
    }
    return plan;
  }

  void schedule_jobs() {
    for (std::size_t at = 0; at < jobs.size() && link_; ++at) {
      if (jobs[at].phase == JobPhase::kQueued) try_start(JobId::at(at));
    }
    drain_link();
  }

  void try_start(JobId id) {
    WorldJob& job = jobs[id.value()];
    std::vector<NodeId> free;
    for (std::size_t at = 0; at < nodes_.size(); ++at) {
      const bool held = std::any_of(job.holds.begin(), job.holds.end(), [&](const auto& hold) {
        return hold.second == NodeId::at(at);
      });
      if (!held && health_[at] == NodeHealth::kReady) free.push_back(NodeId::at(at));
    }
    if (free.size() < job.width) return;
    while (free.size() > job.width) {
      free.erase(free.begin() + static_cast<std::ptrdiff_t>(rng_.below(free.size())));
    }
    job.nodes = free;
    job.phase = JobPhase::kStarting;
    ++job.attempt;
    for (const NodeId n : free) job.holds.insert({job.attempt, n});
    link_->start(StartRanks{id, job.attempt, 0, Duration(), false}, plan_of(job, job.nodes), now_);
  }

  void stop_job(JobId id) {
    WorldJob& job = jobs[id.value()];
    job.phase = JobPhase::kStopping;
    link_->stop(StopRanks{id, job.attempt, Duration::seconds(10), StopReason::kInfra}, now_);
    finish_if_gone(id);
  }

  void finish_if_gone(JobId id) {
    WorldJob& job = jobs[id.value()];
    if (job.phase != JobPhase::kStopping) return;
    for (const auto& [attempt, n] : job.holds) {
      if (attempt != job.attempt) continue;
      const bool fenced = job.restart == RestartPolicy::kAtOnce;
      if (!fenced || health_[n.value()] != NodeHealth::kLost) return;
    }
    job.phase = job.done ? JobPhase::kFinished : JobPhase::kQueued;
  }

  void let_go(JobId id, std::uint32_t attempt, NodeId n) {
    jobs[id.value()].holds.erase({attempt, n});
    finish_if_gone(id);
  }

  void hear(const InputKind& input) {
    if (const auto* up = std::get_if<RanksUp>(&input)) {
      WorldJob& job = jobs[up->job.value()];
      if (up->attempt != job.attempt || job.phase != JobPhase::kStarting) return;
      job.phase = JobPhase::kRunning;
      ++job.ups;
    } else if (const auto* ended = std::get_if<RanksEnded>(&input)) {
      on_ended(*ended);
    } else if (const auto* gone = std::get_if<RanksGone>(&input)) {
      for (const NodeId n : gone->nodes) let_go(gone->job, gone->attempt, n);
    } else if (const auto* joined = std::get_if<NodeJoined>(&input)) {
      on_joined(*joined);
    } else if (const auto* seen = std::get_if<NodeHeard>(&input)) {
      health_[seen->node.value()] = seen->health;
      if (seen->health == NodeHealth::kLost) stop_jobs_on(seen->node);
    }
  }

  void on_ended(const RanksEnded& ended) {
    WorldJob& job = jobs[ended.job.value()];
    if (ended.attempt != job.attempt || !holds_devices(job.phase)) {
      ++unknown_ends;
      return;
    }
    if (job.phase != JobPhase::kStopping) {
      ++job.ends[ended.attempt];
      job.done = ended.kind == ExitKind::kDone;
      job.phase = JobPhase::kStopping;
    }
    if (ended.gone) {
      for (const NodeId n : job.nodes) job.holds.erase({job.attempt, n});
    }
    finish_if_gone(ended.job);
  }

  void on_joined(const NodeJoined& joined) {
    const std::size_t at = joined.node.value();
    health_[at] = NodeHealth::kReady;
    const std::uint64_t before = std::exchange(boots_[at], joined.boot);
    if (before == 0 || before == joined.boot) return;
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      const JobId id = JobId::at(j);
      std::erase_if(jobs[j].holds, [&](const auto& hold) { return hold.second == joined.node; });
      const bool here = std::count(jobs[j].nodes.begin(), jobs[j].nodes.end(), joined.node) != 0;
      const bool runs = jobs[j].phase == JobPhase::kStarting || jobs[j].phase == JobPhase::kRunning;
      if (here && runs) stop_job(id);
      finish_if_gone(id);
    }
  }

  void stop_jobs_on(NodeId lost) {
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      if (!jobs[j].holds.contains({jobs[j].attempt, lost})) continue;
      const bool runs = jobs[j].phase == JobPhase::kStarting || jobs[j].phase == JobPhase::kRunning;
      if (runs) stop_job(JobId::at(j));
      finish_if_gone(JobId::at(j));
    }
  }

  WorldRules rules_;
  Rng rng_;
  Instant now_;
  std::uint64_t sequence_ = 0;
  std::uint64_t pids_ = 0;
  std::uint64_t controllers_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> queue_;
  std::vector<Node> nodes_;
  std::vector<NodeHealth> health_;    ///< as control has it
  std::vector<std::uint64_t> boots_;  ///< as control has it
  std::map<JobId, Fence> fences_;
  std::optional<FleetLink> link_;
};

}  // namespace orrery
