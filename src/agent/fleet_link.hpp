// agent/fleet_link.hpp - the controller's side of the agents: turns control's actions into orders
// for nodes, and the agents' reports into control's inputs.
//
// One for each term of a controller, built by the daemon or the twin after control's state exists.
// A state machine: inputs are calls, effects wait in take(). Time is the controller's, and never
// goes back. Soft state: it is rebuilt from control's jobs and the agents' answers.
// The driver hands over effects in order, and sends an order only after the inputs before it have
// been handled and are durable: an acknowledgement is an order.
// Invariant: no order goes to an agent before it has sent Hello; control learns that ranks are gone
// only from proof: a keeper's report, a Hello that does not list them, or a binding lease that has
// run out. Cost: O(1) a heartbeat of a node that has done everything ordered and has no lease to
// renew; O(log attempts) a report.
#pragma once

#include <map>
#include <queue>
#include <span>
#include <variant>
#include <vector>

#include "agent/executor.hpp"
#include "agent/heartbeat_watch.hpp"
#include "agent/linked_attempt.hpp"
#include "control/action.hpp"

namespace orrery {

struct LinkSetup {
  std::uint64_t cluster = 0;
  std::uint64_t term = 1;            ///< higher than that of any earlier controller
  std::uint64_t sequence = 0;        ///< of the newest order of this term; 0: none yet
  std::vector<std::uint64_t> boots;  ///< boot id of each node, as control knows it; 0: never seen
  HeartbeatRule heartbeats;
  Duration repeat = Duration::seconds(2);  ///< interval for resending an order that shows no effect
  Duration repeat_mending = Duration::minutes(1);
};

/// An attempt that holds devices, as control knows it at the start of a term. An attempt that a
/// newer one of its job has replaced, but that may still be on some lost node, counts as stopping.
struct KnownAttempt {
  AttemptId id;
  std::uint32_t epoch = 0;
  JobPhase phase = JobPhase::kRunning;  ///< kStarting, kRunning or kStopping
  LaunchPlan plan;
  /// Nodes, in the plan or not, where ranks of an earlier epoch may be left; ascending, each once.
  std::vector<NodeId> leaving;
};

class FleetLink final : public Executor {
 public:
  /// Precondition: no controller of an earlier term sends anything after `now`; binding leases
  /// depend on it.
  FleetLink(const LinkSetup& setup, std::span<const KnownAttempt> known, Instant now);

  /// Sends an action to its nodes as soon as they can be reached.
  void carry_out(const Action& action, const State& state, Instant now) override;
  /// Starts a new attempt, or a new epoch of one: nodes that left the plan end their ranks.
  void start(const StartRanks& action, const LaunchPlan& plan, Instant now);
  void stop(const StopRanks& action, Instant now);
  void apply(const ApplyClock& action, Instant now);
  void repair(const RepairNode& action, Instant now);

  void deliver(const Report& report, Instant now) override;
  void advance(Instant now);
  void advance(const State&, Instant now) override { advance(now); }

  /// See HeartbeatWatch for the effect of a late call of advance().
  [[nodiscard]] Instant next_due() const override;
  /// A newer controller's term, as reported by an agent; 0: none. This controller must step down.
  [[nodiscard]] std::uint64_t superseded_by() const { return superseded_by_; }
  /// The sequence of the newest order.
  [[nodiscard]] std::uint64_t sequence() const { return sequence_; }
  /// The number of attempts that still have open orders or reports.
  [[nodiscard]] std::size_t attempts() const { return attempts_.size(); }
  /// The newest readings of a node.
  [[nodiscard]] const Signals& signals(NodeId node) const {
    return contacts_[node.value()].signals;
  }
  [[nodiscard]] std::vector<ExecutorEffect> take() override;

 private:
  struct Question {
    std::uint64_t awaiting = 0;  ///< its sequence, until it is answered; 0: it is
    Instant asked;
  };
  /// The state of a node's agent.
  struct Contact {
    AgentIdentity agent;     ///< before the first answer only the boot id that control knows
    bool met = false;        ///< it has answered with Hello
    bool joins = false;      ///< its next Hello tells control that the node has joined
    Question question;       ///< the newest Reconcile
    std::uint64_t beat = 0;  ///< newest heartbeat
    Instant clock;           ///< the node's own clock at that heartbeat
    Instant renew_at = Instant::max();
    bool unsettled = false;  ///< some order for the node may have to be resent
    std::optional<FaultLayer> mending;
    Instant mending_sent;
    std::vector<std::uint64_t> faults_told;  ///< numbers of the newest few faults passed on
    Signals signals;
    std::vector<AttemptId> attempts;  ///< attempts on the node
  };
  using Attempts = std::map<AttemptId, LinkedAttempt>;
  using Check = std::pair<Instant, NodeId>;

  void restore(const KnownAttempt& known, Instant now);
  void restore_leaving(LinkedAttempt& attempt, NodeId node, Instant now);
  void hear(const Report& report, const Heartbeat& beat, Instant now);
  void hear(const Report& report, const Hello& hello, Instant now);
  void hear(const Report& report, const AttemptReport& state, Instant now);
  void hear(const Report& report, const Refused& refused, Instant now);
  void hear(const Report& report, const HealthFault& fault, Instant now);
  void hear(const Report& report, const Mended& mended, Instant now);

  // Sessions with agents.
  [[nodiscard]] Contact& contact(NodeId node) { return contacts_[node.value()]; }
  [[nodiscard]] bool in_session(const Report& report, Instant now);
  void ask(NodeId node, Instant now);
  void note_alive(NodeId node, Instant now);
  void begin_session(NodeId node, Instant now);
  void acknowledge(const Report& report);
  OrderStamp order(NodeId node, OrderKind what);

  // Orders to nodes.
  LinkedMember& add_member(LinkedAttempt& attempt, const NodeRanks& ranks);
  void set_members(LinkedAttempt& attempt, const LaunchPlan& plan);
  void end_older_attempts(const AttemptId& id, Instant now);
  void drop_gone_members(LinkedAttempt& attempt);
  void want(LinkedAttempt& attempt, Wanted wanted, Instant now);
  void say(LinkedAttempt& attempt, LinkedMember& member, Instant now);
  void repeat(NodeId node, Instant now);
  void renew(NodeId node, Instant now);
  void send_mending(NodeId node, Instant now);

  // Reports from nodes (fleet_link_attempts.cpp).
  void take_in(const NumberedReport& numbered, NodeId node, Instant now);
  void launch_anew(LinkedAttempt& attempt, LinkedMember& member, Instant now);
  void end_stray(const AttemptReport& state, NodeId node, Instant now);
  void find_missing(const Hello& hello, NodeId node, const OrderStamp& bar, Instant now);
  void all_gone_from(NodeId node);
  static void lose_silently(LinkedAttempt& attempt, LinkedMember& member);
  void vanish(LinkedAttempt& attempt, LinkedMember& member, std::string evidence, Instant now);
  void follow_up(LinkedAttempt& attempt, LinkedMember& member, Instant now);
  void note_end(LinkedAttempt& attempt, LinkedMember& member, Instant now);
  void tell_ended(LinkedAttempt& attempt, const LinkedMember& member);
  void tell_gone(LinkedAttempt& attempt, LinkedMember& member);
  void tell_shed(LinkedAttempt& attempt, LinkedMember& member);
  void drop_if_done(const AttemptId& id);
  void check_leases(NodeId node, Instant now);
  void tell(InputKind input) { effects_.emplace_back(std::move(input)); }

  LinkSetup setup_;
  std::uint64_t sequence_ = 0;
  std::uint64_t superseded_by_ = 0;
  HeartbeatWatch watch_;
  std::vector<Contact> contacts_;  ///< by node
  Attempts attempts_;
  /// When a lost node's binding leases must be checked.
  std::priority_queue<Check, std::vector<Check>, std::greater<>> lease_checks_;
  std::vector<ExecutorEffect> effects_;
};

}  // namespace orrery
