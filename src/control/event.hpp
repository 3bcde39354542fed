// control/event.hpp - everything that ever changes control's state.
//
// Decided by Core (control/core.hpp), applied by State, encoded by control/codec.hpp. An event
// carries results (placements, terms, prices), never what would have to be computed again. Values.
// The order of the alternatives is their type id in logs: new ones go to the end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "control/job.hpp"
#include "fleet/state.hpp"
#include "scheduler/scheduler.hpp"

namespace orrery {

/// What is so of an attempt is so of each epoch it ever has.
inline constexpr std::uint32_t kEveryEpoch = ~std::uint32_t{0};

struct JobSubmitted {
  JobId job;
  Submission submission;
  std::string request_id;  ///< the client's; empty: none
  std::string spec;        ///< as its owner wrote it, for whoever launches it; empty: nobody does
  std::string submitter;   ///< name of the token's user; empty: a log of before it was kept
  std::string run_as;      ///< POSIX user of its ranks; empty: the agent's own
};

/// held -> queued. An owner or operator releases a job by JobHoldSet, which this follows.
struct JobReleased {
  JobId job;
};

/// queued -> starting, with devices.
struct JobStarted {
  JobId job;
  std::uint32_t attempt = 0;
  std::vector<PlacedGang> gangs;
  std::vector<GangTerms> terms;           ///< of each gang
  std::optional<Duration> expected;       ///< run time; none: until it is stopped
  Duration checkpoint = Duration::max();  ///< interval; max: it writes none
  Duration delay;                         ///< of the start, so that the draw does not jump
  bool compile = false;                   ///< its program is not there for this target
  std::int64_t microdollars = 0;          ///< price by which it was chosen; 0: not priced
};

/// starting -> running: every rank is up.
struct JobRunning {
  JobId job;
  StateSource source = StateSource::kUnsaid;  ///< of what it goes on from
};

/// Goes on with other devices: another epoch.
struct JobResized {
  JobId job;
  std::uint32_t epoch = 0;
  std::vector<PlacedGang> gangs;
  std::vector<GangTerms> terms;
  JobId in_favour_of;  ///< none: for its own good
  double done = 0;     ///< at this moment, as far as is known
};

/// A gang of it goes on at another clock.
struct ClockSet {
  JobId job;
  std::uint32_t gang = 0;
  GangTerms terms;
  double done = 0;
};

/// starting or running -> stopping.
struct JobStopping {
  JobId job;
  StopReason reason = StopReason::kFinished;
  JobId in_favour_of;
  Blame blame;
  Progress progress;             ///< as far as is known; an end that was asked for tells later
  std::optional<RankExit> exit;  ///< of the rank that ended the attempt
};

/// Ranks of an attempt on these nodes are gone, their devices free; empty: on all it still has.
struct DevicesFreed {
  JobId job;
  std::uint32_t attempt = 0;
  std::vector<NodeId> nodes;
  std::uint32_t epoch = kEveryEpoch;  ///< newest of which they are gone; a newer one's may be there
  std::optional<Progress> progress;   ///< what they say of the work, if the attempt stops
};

/// stopping -> queued or held.
struct JobRequeued {
  JobId job;
  Progress progress;
  Instant not_before;  ///< held until then
};

/// -> finished, failed or cancelled.
struct JobEnded {
  JobId job;
  JobPhase phase = JobPhase::kFinished;
  Progress progress;
  Blame blame;
};

struct NodeChanged {
  NodeId node;
  NodeHealth health = NodeHealth::kReady;
  Blame blame;
  bool window = false;  ///< drained for as long as a maintenance window lasts, no longer
  std::string why;      ///< the reason given for a drain; empty: as before
};

/// A node that came back with another boot id: whatever ran there is gone.
struct NodeBooted {
  NodeId node;
  std::uint64_t boot = 0;
};

/// A node is kept back to replace lost ones, or no longer.
struct SpareSet {
  NodeId node;
  bool spare = true;
};

struct LinkChanged {
  LinkId link;
  LinkState state;
};

/// The operator's cap of a power domain, or what is left of its supply.
struct PowerLimitSet {
  PowerDomainId domain;
  enum class What : std::uint8_t { kCap, kSupply } what = What::kCap;
  std::optional<Watts> limit;
};

/// Tenants or policy as the text of their file.
struct TenantsSet {
  std::string yaml;
};
struct PolicySet {
  std::string yaml;
};

struct SlotsReserved {
  std::vector<Reservation> slots;
};

/// A plan search is done. Logs keep the key alone: the search is a function of the key and of the
/// facts a log's head names, and State asks its PlanSource where `entry` is not there.
struct PlanFound {
  PlanKey key;
  std::shared_ptr<const PlanEntry> entry;
};

/// A decision of a pass that no longer fits the present.
struct DecisionDropped {
  JobId job;
  std::string why;
};

/// Nodes to be empty from an instant on.
struct MaintenanceSet {
  std::uint32_t window = 0;
  std::vector<NodeId> nodes;
  Instant from;
  Instant to;
  std::string why;
};

/// A node fails more often than its like.
struct LemonFound {
  NodeId node;
  std::uint32_t faults = 0;  ///< within the window
};

/// Why devices of a type are idle from now on (control/ledger.hpp).
struct IdleCauseSet {
  FleetTypeId type;
  std::uint8_t cause = 0;
};

/// When passes ran, so that intervals between them hold after a restart.
struct PassDone {
  PassKind kind = PassKind::kIncremental;
};

/// Ended jobs leave the state; what is known of them is kept elsewhere.
struct JobsArchived {
  std::vector<JobId> jobs;
};

/// Its owner wants it ended; it is already stopping for another reason.
struct CancelAsked {
  JobId job;
};

/// What became of the work of a job that goes on: the time it was counted as is laid where it
/// belongs, and it is as far as `progress.done`.
struct WorkSettled {
  JobId job;
  Progress progress;
};

/// What follows from a claim of a job's ranks against their node.
enum class ClaimVerdict : std::uint8_t {
  kRefused,    ///< the program is at fault
  kExcused,    ///< the job starts again as after a fault of the node, which stays in service
  kSuspected,  ///< the same, and the node is out of service until its burn-in passes
  kCleared,    ///< the suspicion was not confirmed
  kConfirmed,  ///< the node's own checks found a fault, too
};

inline std::array<EnumWord<ClaimVerdict>, 5> enum_words(ClaimVerdict) {
  return {{{"refused", ClaimVerdict::kRefused},
           {"excused", ClaimVerdict::kExcused},
           {"suspected", ClaimVerdict::kSuspected},
           {"cleared", ClaimVerdict::kCleared},
           {"confirmed", ClaimVerdict::kConfirmed}}};
}

/// The ranks of an attempt say that their node is faulty.
struct NodeAccused {
  JobId job;
  std::uint32_t attempt = 0;
  NodeId node;
  ClaimVerdict verdict = ClaimVerdict::kRefused;  ///< not cleared or confirmed yet
  std::string evidence;                           ///< in the program's words
};

/// A job is kept from starting, or not any more; one that is queued is held from now on, one that
/// has devices keeps them and is held when it next waits.
struct JobHoldSet {
  JobId job;
  JobHold hold = JobHold::kNone;
};

/// What its owner or an operator changes of a job that has not ended. All values are the new ones.
struct JobChanged {
  JobId job;
  std::int32_t priority = 0;
  std::optional<Duration> time_limit;
  std::optional<Duration> estimate;
  ClassId class_id;  ///< of the request with these values
};

using Event =
    std::variant<JobSubmitted, JobReleased, JobStarted, JobRunning, JobResized, ClockSet,
                 JobStopping, DevicesFreed, JobRequeued, JobEnded, NodeChanged, NodeBooted,
                 SpareSet, LinkChanged, PowerLimitSet, TenantsSet, PolicySet, SlotsReserved,
                 PlanFound, DecisionDropped, MaintenanceSet, LemonFound, IdleCauseSet, PassDone,
                 CancelAsked, JobsArchived, WorkSettled, NodeAccused, JobHoldSet, JobChanged>;

}  // namespace orrery
