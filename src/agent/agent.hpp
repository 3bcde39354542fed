// agent/agent.hpp - the agent of one node: forwards orders to keepers, sends reports to the
// controller.
//
// Built by its process, or by the twin, with the keepers found on the node; each start of the
// process builds a new one. A state machine: inputs are calls, effects wait in take(). Time is the
// node's clock that never goes back and counts sleep. Its state is lost with it: keepers hold what
// matters, and the controller asks again.
// Invariant: an order is carried out only if it is newer than every order that has already taken
// effect here, so that a late message cannot restart an attempt that is gone.
// Cost: O(log attempts of the node) an input; a heartbeat is O(reports not acknowledged).
#pragma once

#include <map>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "agent/message.hpp"

namespace orrery {

struct AgentSetup {
  std::uint64_t cluster = 0;
  AgentIdentity identity;
  Duration beat = Duration::seconds(1);
  Duration repeat = Duration::seconds(2);  ///< interval for resending an unacknowledged report
};

// --- Effects: Report goes to the controller -----------------------------------------------------

struct StartKeeper {
  AttemptId id;
  OrderStamp stamp;
  LaunchRanks launch;
};

struct TellKeeper {
  AttemptId id;
  KeeperOrder order;
};

/// Repairs the node, then calls on_mended.
struct BeginMending {
  FaultLayer layer = FaultLayer::kHost;
};

using AgentEffect = std::variant<Report, StartKeeper, TellKeeper, BeginMending>;

class Agent {
 public:
  /// `found`: attempts whose keepers live on the node. The first beat is due at once.
  Agent(const AgentSetup& setup, std::span<const AttemptId> found, Instant now);

  void on_order(const Order& order, Instant now);
  void on_keeper_report(const AttemptReport& report, Instant now);
  /// The keeper's process has exited, and with it all its processes.
  void on_keeper_exit(const AttemptId& id, Instant now);
  void on_signals(const Signals& signals) { signals_ = signals; }
  /// If two faults of one layer are unacknowledged, the newer one counts.
  void on_fault(const HealthFault& fault, Instant now);
  void on_mended(Instant now);
  void on_timer(Instant now);

  [[nodiscard]] Instant next_due() const { return next_beat_; }
  [[nodiscard]] const AgentIdentity& identity() const { return setup_.identity; }
  /// Whether the controller has acknowledged every report about an attempt. Cost: O(reports that
  /// are not acknowledged).
  [[nodiscard]] bool attempts_acknowledged() const;
  /// Returns the effects in order; each effect is returned once.
  [[nodiscard]] std::vector<AgentEffect> take();

 private:
  struct KeeperRecord {
    AttemptReport state;
    std::uint64_t number = 0;  ///< number of the report with this state; 0: none was sent
    bool exited = false;
    bool released = false;
  };
  struct Unacknowledged {
    Instant sent;
    ReportKind what;
  };
  using Records = std::map<AttemptId, KeeperRecord>;

  [[nodiscard]] std::optional<RefusalReason> refusal(const Order& order) const;
  void refuse(const OrderStamp& stamp, RefusalReason why);
  void obey(const Order& order, const LaunchRanks& launch, Instant now);
  void obey(const Order& order, const EndRanks& end, Instant now);
  void obey(const Order& order, const KillRanks& kill, Instant now);
  void obey(const Order& order, const RenewLease& renewal, Instant now);
  void obey(const Order& order, const MendNode& mend, Instant now);
  void obey(const Order& order, const Reconcile& question, Instant now);
  void obey(const Order& order, const Acknowledge& ack, Instant now);

  template <class What>
  void forward(const Order& order, const What& what);
  void answer(const Order& order, const FenceToken& token, Instant now);
  [[nodiscard]] bool other_attempt_here(const Order& order, const LaunchRanks& launch);
  void publish(KeeperRecord& record, Instant now);
  void settle(const AttemptId& id);
  std::uint64_t send(ReportKind what, Instant now);

  AgentSetup setup_;
  OrderStamp newest_;  ///< orders up to it have taken effect or never will
  Records keepers_;
  std::map<std::uint64_t, Unacknowledged> outbox_;  ///< by number
  std::uint64_t numbers_ = 0;
  std::uint64_t beats_ = 0;
  Signals signals_;
  bool mending_ = false;
  Instant next_beat_;
  std::vector<AgentEffect> effects_;
};

}  // namespace orrery
