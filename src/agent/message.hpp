// agent/message.hpp - what controller, agents and keepers tell each other.
//
// One agent a node speaks with the controller's FleetLink; one keeper an attempt and node holds the
// ranks and speaks with the agent. Plain values; made and read by those three alone.
//
// The network between controller and agent may lose, double, delay and reorder. Therefore orders
// say what shall be, not what shall be done, reports say everything known of an attempt, and each
// side repeats what the other has not acknowledged. Between agent and keeper, on one machine,
// messages arrive in order and are lost only with one of the two.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "agent/fence.hpp"
#include "base/time.hpp"
#include "control/input.hpp"

namespace orrery {

// --- Orders: controller to agent ----------------------------------------------------------------

/// Which order is newer: of a later term, or of the same and with a higher sequence. Orders of one
/// controller to all nodes are numbered by one counter from 1.
struct OrderStamp {
  std::uint64_t term = 0;
  std::uint64_t sequence = 0;

  friend auto operator<=>(const OrderStamp&, const OrderStamp&) = default;
};

/// Who an agent is. A node booted anew or an agent started anew is somebody else, so that an order
/// to its predecessor, who may have obeyed it already, is never obeyed twice.
struct AgentIdentity {
  NodeId node;
  std::uint64_t boot = 0;
  std::uint64_t incarnation = 0;  ///< of the agent, within a boot

  friend bool operator==(const AgentIdentity&, const AgentIdentity&) = default;
};

/// Ranks of one gang on one node: the process on the i-th set bit of `devices` is rank ranks[i].
struct RankShare {
  std::uint32_t gang = 0;
  std::uint64_t devices = 0;
  std::vector<std::uint32_t> ranks;
  double clock = 1;                    ///< of the full one
  std::uint16_t share = kWholeDevice;  ///< of each device, in thousandths

  friend bool operator==(const RankShare&, const RankShare&) = default;
};

/// How long a keeper goes on unheard by the controller. `length` counts from an instant of the
/// node's own clock at which the controller is known to have heard of the attempt, never from when
/// a message arrived: however late it comes, the keeper ends before the controller may think so.
struct Lease {
  enum class Kind : std::uint8_t {
    kOrphan,  ///< the controller waits for proof; after `length` the work has no owner any more
    kBinding  ///< killed at 90 % of `length`; the controller starts it elsewhere after all of it
  } kind = Kind::kOrphan;
  Duration length = Duration::hours(24);

  /// When the keeper acts.
  [[nodiscard]] Duration patience() const {
    return kind == Kind::kOrphan ? length : Duration::nanoseconds(length.count_ns() / 10 * 9);
  }

  friend bool operator==(const Lease&, const Lease&) = default;
};

/// These ranks run on this node. To a keeper already there: go on in a newer epoch, with other
/// ranks, or at other clocks.
struct LaunchRanks {
  FenceToken token;
  std::vector<RankShare> shares;
  Duration delay;  ///< of the first start, so that the draw does not jump
  Duration grace;  ///< for ranks that must leave
  Lease lease;
  Instant heard;  ///< Heartbeat::at of the newest one the controller had
};

/// The ranks end: asked first, killed after `grace`. Asking again never lengthens it.
struct EndRanks {
  FenceToken token;
  Duration grace;
};

struct KillRanks {
  FenceToken token;
};

struct RenewLease {
  AttemptId id;
  Instant heard;  ///< as in LaunchRanks
};

/// Mend what can be mended from here (reset, burn-in) and say when it is done.
struct MendNode {
  FaultLayer layer = FaultLayer::kHost;
};

/// Say who you are and all you have. The answer, Hello, is also a proof: an attempt it does not
/// name is not there, and no order older than the question will bring it.
struct Reconcile {};

/// What report `number` says is durable.
struct Acknowledge {
  std::uint64_t number = 0;
};

using OrderKind =
    std::variant<LaunchRanks, EndRanks, KillRanks, RenewLease, MendNode, Reconcile, Acknowledge>;

struct Order {
  std::uint64_t cluster = 0;
  OrderStamp stamp;
  AgentIdentity to;  ///< Reconcile goes to whoever lives at the node
  OrderKind what;
};

// --- Reports: agent to controller ---------------------------------------------------------------

/// The life of an attempt on one node, in order.
enum class RankStage : std::uint8_t {
  kUnknown,    ///< a keeper is there and has not answered yet
  kPreparing,  ///< no rank started
  kStarting,   ///< ranks of the newest epoch are not all up
  kRunning,
  kEnding,  ///< asked to end, within grace
  kKilled,
  kGone,  ///< no process is left
};

/// How ranks ended by themselves, or were ended without an order.
struct AttemptEnd {
  ExitKind kind = ExitKind::kDone;
  Blame blame;
  std::optional<RankExit> exit = std::nullopt;  ///< of the rank that ended the attempt
};

/// All that is known of an attempt on a node; a later one replaces an earlier one.
struct AttemptReport {
  FenceToken token;  ///< with the newest epoch ordered
  RankStage stage = RankStage::kUnknown;
  std::optional<std::uint32_t> up_epoch;  ///< newest of which every rank here was up
  /// Newest of which every process here is: what only earlier ones had is gone.
  std::uint32_t shed_epoch = 0;
  std::vector<double> clocks;     ///< of its shares, in order; what is not named runs at full clock
  std::optional<AttemptEnd> end;  ///< kDone: every rank here is done
  Progress progress;
  /// Newest order that has its effect; of what is gone, no older order can bring it back.
  OrderStamp applied;
};

/// Readings of a node, small enough for every heartbeat.
struct Signals {
  std::uint32_t power_w = 0;
  std::uint16_t temperature_c = 0;  ///< of the hottest accelerator
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

/// The answer to the Reconcile with this stamp. Of an earlier term it is no answer.
struct Hello {
  OrderStamp answers;
  Instant at;  ///< the node's own clock
  std::vector<NumberedReport> attempts;
};

enum class RefusalReason : std::uint8_t {
  kOtherCluster,
  kOlderTerm,     ///< there is a newer controller
  kOtherAgent,    ///< for a predecessor of this agent
  kOlderOrder,    ///< overtaken by a newer one
  kOlderAttempt,  ///< a newer attempt of the job is here
  kNotGone,       ///< an earlier attempt of the job is still here; it is killed now
  kLeaseOver,     ///< so late that its lease has run out on the way
};

struct Refused {
  OrderStamp stamp;
  RefusalReason why = RefusalReason::kOlderOrder;
  std::uint64_t term = 0;  ///< the newest this agent has seen
};

/// What the checks of a node find, or what ranks on it say.
struct HealthFault {
  FaultLayer layer = FaultLayer::kHost;
  std::string evidence;
  bool repair = false;     ///< it cannot take work before somebody has mended it
  bool stops_jobs = true;  ///< what runs on it is gone or wrong
  AttemptId claimed_by;    ///< whose ranks say so; no job: the node's own checks
};

struct Mended {};

using ReportKind = std::variant<Hello, Heartbeat, AttemptReport, Refused, HealthFault, Mended>;

struct Report {
  AgentIdentity from;
  std::uint64_t number = 0;  ///< to be acknowledged; 0: it need not be
  ReportKind what;
};

// --- Orders: agent to keeper --------------------------------------------------------------------

/// A new agent asks for the state of what its predecessor left.
struct AdoptKeeper {};

/// The end is known for good where it must be: nothing is left to do.
struct ReleaseKeeper {};

struct KeeperOrder {
  OrderStamp stamp;
  std::variant<LaunchRanks, EndRanks, KillRanks, RenewLease, AdoptKeeper, ReleaseKeeper> what;
};

}  // namespace orrery
