// twin/holds/virtual_manager.hpp - a resource manager in a virtual world: a queue, nodes and jobs,
// with the faults of real ones. It saves its state every five seconds and restarts from it, so that
// it forgets what it has acknowledged and gives ids out again.
//
// Owned by the LentFleet, which calls tick() every second. What it believes may be wrong: the truth
// is which step runs on a node. All random numbers are the world's. One thread.
// Invariant: a node has the processes of one step at most, except those that the failure of a node
// left there. Cost: O(jobs x nodes) a tick.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/holds/hold_link.hpp"
#include "twin/holds/manager_rules.hpp"
#include "twin/protocol/protocol_context.hpp"

namespace orrery {

/// A job of the manager: a hold, or the work of others.
struct ManagerJob {
  std::uint64_t id = 0;        ///< may be given out again after a crash
  std::optional<HoldKey> key;  ///< none: the work of others
  HoldPhase phase = HoldPhase::kWaiting;
  /// What it was submitted with.
  struct Wish {
    std::uint32_t nodes = 1;
    std::vector<std::string> avoid;
    Duration time;
  };
  Wish wish;
  Instant since;          ///< when it came into its phase
  Instant due;            ///< waiting: not started before; running: its time is over
  std::uint64_t run = 0;  ///< of its newest start
  bool requeued = false;  ///< it waits again after its end
  std::vector<NodeId> nodes;
  std::string reason;
  /// What it records of the newest start, in whole seconds.
  struct Record {
    Instant started;
    Instant ended;
    std::vector<std::string> nodes;
  };
  std::optional<Record> record;
};

/// Whether the agent of a step starts, or its start fails.
enum class AgentComes : std::uint8_t { kNever, kSoon };

enum class Frozen : std::uint8_t { kNo, kYes };

/// The processes of a job on a node. `run` is never used again; 0: there are none.
struct ManagerStep {
  std::uint64_t run = 0;
  std::optional<AgentHold> hold;  ///< none: the work of others
};

class VirtualManager {
 public:
  /// What happens on the nodes of holds.
  struct Outside {
    std::function<void(NodeId, const ManagerStep&, AgentComes)> begin;
    std::function<void(NodeId)> warn;       ///< the agent learns that the step will be ended
    std::function<void(NodeId)> end_agent;  ///< the agent dies
    std::function<void(NodeId)> end;        ///< all processes of the step die
    std::function<void(NodeId, Frozen)> freeze;
    std::function<void(std::string)> wrong;  ///< a promise is broken
  };

  /// Lends the last nodes of the fleet. The context and the topology must outlive it.
  VirtualManager(ProtocolContext& context, const Topology& topology, const ManagerRules& rules,
                 Outside outside);
  VirtualManager(const VirtualManager&) = delete;
  VirtualManager& operator=(const VirtualManager&) = delete;

  // --- Commands. Precondition: it answers.

  /// Whether it answers commands: it does not while it restarts.
  [[nodiscard]] bool answers() const { return context_.now() >= back_at_; }
  /// Returns the id of a new job, or why there is none.
  std::variant<std::uint64_t, HoldRefusal> submit(const EnsureHold& hold);
  /// Ends the job with that id and key. If the order has no key, the id alone selects the job.
  void cancel(const ReleaseHold& release);
  /// Returns a complete and true list.
  [[nodiscard]] ManagerListing list() const;

  // --- Nodes

  /// The node has lost its power.
  void fail_node(NodeId node);
  /// The agent of the node's step has ended, and with it the step.
  void exit_step(NodeId node);

  // --- Time

  void tick();
  /// Ends all faults of its own.
  void make_calm();

  // --- What is there

  [[nodiscard]] std::span<const ManagerJob> jobs() const { return jobs_; }
  [[nodiscard]] const ManagerStep& step(NodeId node) const { return at(node).step; }
  /// When it last proved that nothing of any hold is left on the node; Instant(): never.
  [[nodiscard]] Instant proven(NodeId node) const {
    return at(node).doubt ? Instant() : at(node).proven;
  }
  [[nodiscard]] bool lends(NodeId node) const { return node.value() >= first_; }

 private:
  struct Node {
    ManagerStep step;
    bool ending = false;  ///< the step is being ended
    Instant down_until;   ///< it is out of service before
    Instant drained_until;
    Instant proven;      ///< when the end of a hold proved last that nothing of it is left
    bool doubt = false;  ///< a step here once ended without such a proof
  };
  struct Saved {
    Instant at;
    std::vector<ManagerJob> jobs;
    std::uint64_t next_id = 1;
  };

  [[nodiscard]] Node& at(NodeId node) { return nodes_[node.value() - first_]; }
  [[nodiscard]] const Node& at(NodeId node) const { return nodes_[node.value() - first_]; }
  [[nodiscard]] bool chance(double share) { return share > 0 && context_.chance(share); }
  void set_phase(ManagerJob& job, HoldPhase phase, std::string reason);

  void crash();
  /// Compares what it believes with the nodes, as it does after a restart.
  void compare();
  void strike(ManagerJob& job);
  void strike_running(ManagerJob& job);
  void advance(ManagerJob& job);
  void submit_foreign();
  [[nodiscard]] bool may_start(const ManagerJob& job);
  void start(ManagerJob& job, std::vector<NodeId> nodes);
  void end_job(ManagerJob& job, std::string reason, std::uint64_t grace);
  void end_step(NodeId node, std::uint64_t grace);
  void fail(ManagerJob& job, NodeId node);

  ProtocolContext& context_;
  const Topology& topology_;
  ManagerFaults faults_;
  Outside outside_;
  std::uint32_t first_;  ///< of its nodes
  std::vector<Node> nodes_;
  std::vector<ManagerJob> jobs_;
  Saved saved_;
  std::uint64_t next_id_ = 1;
  std::uint64_t runs_ = 0;
  Instant back_at_;
};

}  // namespace orrery
