// twin/protocol/protocol_nodes.hpp - the nodes of a virtual fleet with the real agents and keepers,
// and their processes: they can die, freeze, drift and restart.
//
// Built by ProtocolWorld, which delivers orders and takes reports. Each node has a clock of its own
// that runs too fast or too slow and restarts with a boot. Messages between the agent, keepers and
// processes of a node are lost only if one of them dies. One thread.
// It checks what no machine of the protocol can see: that no accelerator ever has processes of two
// attempts, unless they share it, and that no job has two attempts at once unless its effects are
// fenced.
// Cost: O(nodes + keepers) a timer.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/agent.hpp"
#include "agent/keeper.hpp"
#include "base/numbers/rng.hpp"
#include "twin/world/virtual_time.hpp"

namespace orrery {

/// The true properties of a job.
struct ProtocolJob {
  RestartPolicy restart = RestartPolicy::kWhenSafe;
  std::uint32_t devices = 1;
  std::uint32_t devices_min = 0;          ///< elastic down to it; 0: fixed size
  std::uint16_t share = kWholeDevice;     ///< of its device, in thousandths
  Duration work = Duration::seconds(60);  ///< of an attempt, once its ranks have started
  std::string tenant = "default";
};

class ProtocolNodes {
 public:
  struct Setup {
    std::uint64_t cluster = 1;
    std::size_t nodes = 1;
    Duration beat = Duration::seconds(1);
    double ignores_term = 0;  ///< share of processes that only SIGKILL ends
    std::int32_t drift = 0;   ///< of clocks, at most, in 1/10000 in both directions
  };
  struct Outside {
    VirtualTime& time;
    std::function<void(const Report&)> send;
    std::function<void(std::string)> wrong;  ///< called when a promise is broken
  };

  ProtocolNodes(const Setup& setup, std::uint64_t seed, Outside outside);
  ProtocolNodes(const ProtocolNodes&) = delete;
  ProtocolNodes& operator=(const ProtocolNodes&) = delete;

  /// Must be called before any order for the job.
  void know(JobId id, const ProtocolJob& job) { jobs_[id] = job; }
  /// Delivers an order to its node.
  void deliver(const Order& order);

  // --- Faults: each has no effect where it cannot happen

  void kill_agent(NodeId id);
  void start_agent(NodeId id);
  void freeze_agent(NodeId id);
  void thaw_agent(NodeId id);
  /// Kills a keeper, and its processes with it.
  void kill_keeper(NodeId id, const AttemptId& attempt);
  void freeze_keeper(NodeId id, const AttemptId& attempt);
  void thaw_keeper(NodeId id, const AttemptId& attempt);
  void fail_rank(NodeId id, const AttemptId& attempt);
  void report_fault(NodeId id, const HealthFault& fault);
  void power_off(NodeId id);
  /// Powers the node on, with a new boot id.
  void power_on(NodeId id);

  // --- Time

  [[nodiscard]] Instant next_due();
  void fire_due();

  // --- What is there

  [[nodiscard]] std::size_t size() const { return nodes_.size(); }
  [[nodiscard]] bool powered(NodeId id) const { return nodes_[id.value()].powered; }
  [[nodiscard]] std::vector<AttemptId> keepers_on(NodeId id) const;
  [[nodiscard]] std::size_t keepers() const;
  /// Living processes of an attempt, on all nodes.
  [[nodiscard]] std::size_t processes(const AttemptId& attempt) const;
  /// The lowest clock of the attempt's processes; 1: none is lowered.
  [[nodiscard]] double clock(const AttemptId& attempt) const;
  /// Processes ever started.
  [[nodiscard]] std::uint64_t started() const { return pids_; }
  /// Effects of older attempts that a fence rejected.
  [[nodiscard]] std::uint64_t fenced() const { return fenced_; }

 private:
  struct Process {
    std::uint64_t pid = 0;
    bool ignores_term = false;
    FenceToken token;  ///< of the newest epoch it takes part in
    std::uint16_t share = kWholeDevice;
    double clock = 1;
  };
  /// Messages that arrive while the agent or keeper is frozen.
  using Inbox = std::vector<VirtualTime::Event>;
  using Processes = std::map<RankSlot, Process>;
  struct KeeperHost {
    Keeper keeper;
    Processes processes;
    bool frozen = false;
    Inbox inbox;
  };
  struct Node {
    bool powered = true;
    std::uint64_t boot = 1;
    std::uint64_t incarnation = 0;
    Instant booted;
    Instant clock_at_boot;
    std::int64_t rate = 10'000;  ///< of its clock, in 1/10000
    std::optional<Agent> agent;
    bool frozen = false;
    Inbox inbox;
    std::map<AttemptId, KeeperHost> keepers;
  };

  Node& node(NodeId id) { return nodes_[id.value()]; }
  [[nodiscard]] Instant clock(const Node& node) const;
  /// The time at which a node's clock will show `at`.
  [[nodiscard]] static Instant when(const Node& node, Instant at);
  KeeperHost* host_of(NodeId id, const AttemptId& attempt);
  template <class Visit>
  void for_each_timer(Visit&& visit);

  using ToAgent = std::function<void(Agent&, Instant)>;
  using ToKeeper = std::function<void(Keeper&, Instant)>;
  void reach_agent(NodeId id, const ToAgent& tell);
  void reach_keeper(NodeId id, const AttemptId& attempt, const ToKeeper& tell);
  void tell_agent(NodeId id, ToAgent tell);
  void drain_agent(NodeId id);
  void drain_keeper(NodeId id, const AttemptId& attempt);
  void begin_mending(NodeId id);

  void check_start(NodeId id, const StartProcesses& start);
  void start_processes(NodeId id, const StartProcesses& start);
  void start_process(NodeId id, const AttemptId& attempt, const RankSlot& slot,
                     std::uint16_t share);
  void join_epoch(NodeId id, const FenceToken& token, const RankSlot& slot, double clock);
  void cap_clock(NodeId id, const AttemptId& attempt, const RankShare& share);
  void have_effect(NodeId id, const AttemptId& attempt, std::uint64_t pid);
  /// nullptr: the process is dead.
  [[nodiscard]] Processes::value_type* find_process(NodeId id, const AttemptId& attempt,
                                                    std::uint64_t pid);
  struct Ending {
    std::uint64_t pid = 0;
    int status = 0;
  };
  void end_process(NodeId id, const AttemptId& attempt, const Ending& ending);
  void signal_processes(NodeId id, const AttemptId& attempt, const SignalProcesses& signal);

  Setup setup_;
  Outside outside_;
  Rng rng_;
  std::vector<Node> nodes_;
  std::map<JobId, ProtocolJob> jobs_;
  std::map<JobId, Fence> fences_;
  std::uint64_t pids_ = 0;
  std::uint64_t fenced_ = 0;
};

}  // namespace orrery
