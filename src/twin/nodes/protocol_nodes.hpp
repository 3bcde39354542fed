// twin/nodes/protocol_nodes.hpp - the nodes of a virtual fleet with the real agents and keepers:
// they can die, freeze, drift and restart.
//
// Built by ProtocolWorld, which delivers orders and takes reports. Each node has a clock of its own
// that runs too fast or too slow and restarts with a boot. Messages between the agent, keepers and
// processes of a node are lost only if one of them dies. One thread.
// Cost: O(nodes + keepers) a timer.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/agent.hpp"
#include "agent/keeper.hpp"
#include "twin/nodes/protocol_processes.hpp"
#include "twin/world/virtual_time.hpp"

namespace orrery {

/// The clock of a node, which runs too fast or too slow and restarts with a boot.
class NodeClock {
 public:
  /// `rate`: in 1/10000 of true time; `shown`: at the time `now`.
  NodeClock(std::int64_t rate, Instant shown, Instant now)
      : rate_(rate), shown_(shown), since_(now) {}

  void restart(Instant now) { *this = NodeClock(rate_, Instant(), now); }
  [[nodiscard]] Instant shows(Instant now) const;
  /// The time at which it will show `at`; Instant::max() for a time more than a year ahead.
  [[nodiscard]] Instant when_shows(Instant at) const;

 private:
  std::int64_t rate_;
  Instant shown_;  ///< at `since_`
  Instant since_;
};

/// Whether an agent may start on a node that a resource manager lends.
enum class AgentMay : std::uint8_t { kNotStart, kStart };

/// The agent on a lent node.
struct LentAgent {
  const AgentIdentity* identity = nullptr;  ///< nullptr: none lives
  bool frozen = false;
  bool lost_step = false;  ///< the node has lost its power since agents were allowed to start
};

class ProtocolNodes {
 public:
  struct Setup {
    std::uint64_t cluster = 1;
    std::size_t nodes = 1;
    std::size_t lent = 0;  ///< the last of them belong to a resource manager: no agent starts yet
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

  /// The processes of ranks. Their jobs must be made known to it.
  [[nodiscard]] ProtocolProcesses& ranks() { return processes_; }
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
  void report_fault(NodeId id, const HealthFault& fault);
  void power_off(NodeId id);
  /// Powers the node on, with a new boot id.
  void power_on(NodeId id);
  /// Sets whether agents may start on a lent node, until it loses its power.
  void host(NodeId id, AgentMay may);

  // --- Time

  [[nodiscard]] Instant next_due();
  void fire_due();

  // --- What is there

  [[nodiscard]] std::size_t size() const { return nodes_.size(); }
  [[nodiscard]] bool powered(NodeId id) const { return nodes_[id.value()].powered; }
  [[nodiscard]] LentAgent agent(NodeId id) const {
    const Node& at = nodes_[id.value()];
    return {at.agent ? &at.agent->identity() : nullptr, at.frozen, at.lost_step};
  }
  [[nodiscard]] std::vector<AttemptId> keepers_on(NodeId id) const;
  [[nodiscard]] std::size_t keepers() const;

 private:
  /// Messages that arrive while the agent or keeper is frozen.
  using Inbox = std::vector<VirtualTime::Event>;
  struct KeeperHost {
    Keeper keeper;
    bool frozen = false;
    Inbox inbox;
  };
  struct Node {
    NodeClock clock;
    bool powered = true;
    bool hosted = true;      ///< an agent may start
    bool lost_step = false;  ///< it may not any more, as the node has lost its power
    std::uint64_t boot = 1;
    std::uint64_t incarnation = 0;
    std::optional<Agent> agent;
    bool frozen = false;
    Inbox inbox;
    std::map<AttemptId, KeeperHost> keepers;
  };

  Node& node(NodeId id) { return nodes_[id.value()]; }
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

  Setup setup_;
  Outside outside_;
  Rng rng_;
  std::vector<Node> nodes_;
  ProtocolProcesses processes_;
};

}  // namespace orrery
