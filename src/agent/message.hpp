// agent/message.hpp - the messages between controller, agents and keepers.
//
// The one agent of a node communicates with the controller's FleetLink; one keeper for each attempt
// and node holds the ranks and communicates with the agent. Plain values; made and read by those
// three alone.
//
// The network between controller and agent may lose, duplicate, delay and reorder. Therefore orders
// state the target, not a step towards it, reports contain everything known of an attempt, and each
// side resends what the other has not acknowledged. Between agent and keeper, on one machine,
// messages arrive in order and are lost only if one of the two dies.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "agent/fence.hpp"
#include "base/time.hpp"
#include "control/input.hpp"
#include "serving/replica.hpp"

namespace orrery {

// --- Orders: controller to agent ----------------------------------------------------------------

/// Orders compare by term, then by sequence: the higher is newer. The orders of one controller to
/// all nodes are numbered by one counter from 1.
struct OrderStamp {
  std::uint64_t term = 0;
  std::uint64_t sequence = 0;

  friend auto operator<=>(const OrderStamp&, const OrderStamp&) = default;
};

/// Identifies an agent. A rebooted node or a restarted agent has another identity, so that an order
/// to the earlier agent, which may have carried it out already, is never carried out twice.
struct AgentIdentity {
  NodeId node;
  std::uint64_t boot = 0;
  std::uint64_t incarnation = 0;  ///< incarnation of the agent within a boot

  friend bool operator==(const AgentIdentity&, const AgentIdentity&) = default;
};

/// Ranks of one gang on one node: the process on the i-th set bit of `devices` is rank ranks[i].
struct RankShare {
  std::uint32_t gang = 0;
  std::uint64_t devices = 0;
  std::vector<std::uint32_t> ranks;
  double clock = 1;                    ///< part of the full clock
  std::uint16_t share = kWholeDevice;  ///< part of each device, in thousandths

  friend bool operator==(const RankShare&, const RankShare&) = default;
};

/// How long a keeper goes on without contact to the controller. `length` counts from an instant of
/// the node's own clock at which the controller is known to have received a heartbeat, never from
/// the arrival of a message: however late that is, the keeper ends before the controller may assume
/// so.
struct Lease {
  enum class Kind : std::uint8_t {
    kOrphan,  ///< the controller waits for proof; after `length` the keeper gives the work up
    kBinding  ///< killed at 90 % of `length`; after all of it the controller restarts elsewhere
  } kind = Kind::kOrphan;
  Duration length = Duration::hours(24);

  /// Returns when the keeper acts.
  [[nodiscard]] Duration patience() const {
    return kind == Kind::kOrphan ? length : Duration::nanoseconds(length.count_ns() / 10 * 9);
  }

  friend bool operator==(const Lease&, const Lease&) = default;
};

/// Runs these ranks on this node. A keeper that is already there continues in a newer epoch, with
/// other ranks, or at other clocks.
struct LaunchRanks {
  FenceToken token;
  std::vector<RankShare> shares;
  Duration delay;  ///< delay of the first start, so that power draw does not jump
  Duration grace;  ///< for ranks that must leave
  Lease lease;
  Instant heard;  ///< Heartbeat::at of the newest heartbeat that the controller received
};

/// Ends the ranks: requested first, killed after `grace`. A repeated order never lengthens it.
struct EndRanks {
  FenceToken token;
  Duration grace;
};

struct KillRanks {
  FenceToken token;
};

struct RenewLease {
  AttemptId id;
  Instant heard;  ///< Heartbeat::at of the newest heartbeat that the controller received
};

/// Repairs what can be repaired by software (reset, burn-in); the agent reports when it is done.
struct MendNode {
  FaultLayer layer = FaultLayer::kHost;
};

/// Requests the agent's identity and all its attempts. The answer, Hello, is also a proof: an
/// attempt it does not list is not there, and no order older than the question can start it.
struct Reconcile {};

/// Confirms that the content of report `number` is durable.
struct Acknowledge {
  std::uint64_t number = 0;
};

using OrderKind =
    std::variant<LaunchRanks, EndRanks, KillRanks, RenewLease, MendNode, Reconcile, Acknowledge>;

struct Order {
  std::uint64_t cluster = 0;
  OrderStamp stamp;
  AgentIdentity to;  ///< Reconcile goes to any agent of the node
  OrderKind what;
};

// --- Reports: agent to controller ---------------------------------------------------------------

/// The life of an attempt on one node, in order.
enum class RankStage : std::uint8_t {
  kUnknown,    ///< a keeper is there and has not answered yet
  kPreparing,  ///< no rank started
  kStarting,   ///< not all ranks of the newest epoch are up
  kRunning,
  kEnding,  ///< was asked to end, within grace
  kKilled,
  kGone,  ///< no process is left
};

/// How ranks ended by themselves, or without an order.
struct AttemptEnd {
  ExitKind kind = ExitKind::kDone;
  Blame blame;
  std::optional<RankExit> exit = std::nullopt;  ///< exit of the rank that ended the attempt
};

/// Everything known of an attempt on a node; a later report replaces an earlier one.
struct AttemptReport {
  FenceToken token;  ///< holds the newest ordered epoch
  RankStage stage = RankStage::kUnknown;
  std::optional<std::uint32_t> up_epoch;  ///< newest epoch in which every rank here was up
  /// Newest epoch that every process here belongs to: processes of only earlier epochs are gone.
  std::uint32_t shed_epoch = 0;
  std::vector<double> clocks;  ///< clocks of its shares, in order; missing ones run at full clock
  std::optional<AttemptEnd> end;  ///< kDone: every rank here is done
  Progress progress;
  /// Newest order that took effect. If the attempt is gone, no older order can restart it.
  OrderStamp applied;
  /// The newest line that a replica of a service wrote; none: no replica, or none yet.
  std::optional<ReplicaReport> replica = std::nullopt;
};

/// Readings of a node, small enough for every heartbeat.
struct Signals {
  std::uint32_t power_w = 0;
  std::uint16_t temperature_c = 0;  ///< temperature of the hottest accelerator
  std::uint16_t xid_count = 0;      ///< driver errors since boot
  std::uint32_t ecc_count = 0;      ///< uncorrected memory errors since boot
  std::uint32_t link_errors = 0;    ///< replays and CRC errors since boot
};

struct Heartbeat {
  std::uint64_t sequence = 0;
  Instant at;  ///< the node's own clock, which never goes back and counts sleep
  Signals signals;
};

struct NumberedReport {
  std::uint64_t number = 0;
  AttemptReport report;
};

/// The answer to the Reconcile with this stamp. One of an earlier term is not an answer.
struct Hello {
  OrderStamp answers;
  Instant at;  ///< the node's own clock
  std::vector<NumberedReport> attempts;
};

enum class RefusalReason : std::uint8_t {
  kOtherCluster,
  kOlderTerm,     ///< there is a newer controller
  kOtherAgent,    ///< meant for an earlier agent of this node
  kOlderOrder,    ///< a newer order has overtaken it
  kOlderAttempt,  ///< a newer attempt of the job is here
  kNotGone,       ///< an earlier attempt of the job is still here; it is killed now
  kLeaseOver,     ///< the order was so late that its lease has run out
};

struct Refused {
  OrderStamp stamp;
  RefusalReason why = RefusalReason::kOlderOrder;
  std::uint64_t term = 0;  ///< newest term that this agent has seen
};

/// A fault found by the node's checks, or reported by ranks on the node.
struct HealthFault {
  FaultLayer layer = FaultLayer::kHost;
  std::string evidence;
  bool repair = false;     ///< the node takes no work before it is repaired
  bool stops_jobs = true;  ///< the jobs on it are gone or wrong
  AttemptId claimed_by;    ///< attempt whose ranks report it; no job: the node's own checks
};

struct Mended {};

using ReportKind = std::variant<Hello, Heartbeat, AttemptReport, Refused, HealthFault, Mended>;

struct Report {
  AgentIdentity from;
  std::uint64_t number = 0;  ///< number to acknowledge; 0: no acknowledgement needed
  ReportKind what;
};

// --- Orders: agent to keeper --------------------------------------------------------------------

/// A new agent requests the state of a keeper that an earlier agent left.
struct AdoptKeeper {};

/// The end of the attempt is known durably: the keeper has nothing left to do.
struct ReleaseKeeper {};

struct KeeperOrder {
  OrderStamp stamp;
  std::variant<LaunchRanks, EndRanks, KillRanks, RenewLease, AdoptKeeper, ReleaseKeeper> what;
};

}  // namespace orrery
