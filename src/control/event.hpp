// control/event.hpp - everything that ever changes control's state.
//
// Events are decided by Core (control/core/core.hpp), applied by State and encoded by
// control/codec/codec.hpp. An event carries results (placements, terms, prices), never input for a
// computation to repeat. Plain values. The position of an alternative in the variant is its type id
// in logs: new ones go to the end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "control/state/job.hpp"
#include "fleet/state.hpp"
#include "scheduler/scheduler.hpp"
#include "serving/replica.hpp"

namespace orrery {

/// Stands for all epochs of an attempt, past and future.
inline constexpr std::uint32_t kEveryEpoch = ~std::uint32_t{0};

struct JobSubmitted {
  JobId job;
  Submission submission;
  std::string request_id;  ///< id the client gave the request; empty: none
  std::string spec;        ///< the owner's text, for the agent that launches it; empty: none does
  std::string submitter;   ///< name of the token's user; empty: the log is older than this field
  std::string run_as;      ///< POSIX user of its ranks; empty: the agent's own
};

/// held -> queued. An owner or operator releases a job by JobHoldSet, which this follows.
struct JobReleased {
  JobId job;
};

/// queued -> starting: the job gets devices.
struct JobStarted {
  JobId job;
  std::uint32_t attempt = 0;
  std::vector<PlacedGang> gangs;
  std::vector<GangTerms> terms;           ///< one for each gang
  std::optional<Duration> expected;       ///< run time; none: until it is stopped
  Duration checkpoint = Duration::max();  ///< checkpoint interval; max: the job writes none
  Duration delay;                         ///< delay of the start, so that power draw does not jump
  bool compile = false;                   ///< its program is not compiled yet for this target
  std::int64_t microdollars = 0;  ///< price at which this placement was chosen; 0: not priced
};

/// starting -> running: every rank is up.
struct JobRunning {
  JobId job;
  StateSource source = StateSource::kUnsaid;  ///< where the ranks read the state they continue from
};

/// The job continues on other devices: a new epoch begins.
struct JobResized {
  JobId job;
  std::uint32_t epoch = 0;
  std::vector<PlacedGang> gangs;
  std::vector<GangTerms> terms;
  JobId in_favour_of;  ///< job that gets the devices; none: the resize benefits this job
  double done = 0;     ///< part of the work that is done now, as far as is known
};

/// A gang of the job continues at another clock.
struct ClockSet {
  JobId job;
  std::uint32_t gang = 0;
  GangTerms terms;
  double done = 0;
};

/// starting or running -> stopping: the attempt ends.
struct JobStopping {
  JobId job;
  StopReason reason = StopReason::kFinished;
  JobId in_favour_of;
  Blame blame;
  Progress progress;             ///< as far as is known; a requested stop gets a later report
  std::optional<RankExit> exit;  ///< exit of the rank that ended the attempt
};

/// The ranks of an attempt on these nodes are gone and their devices free; no nodes: all nodes that
/// the attempt still has.
struct DevicesFreed {
  JobId job;
  std::uint32_t attempt = 0;
  std::vector<NodeId> nodes;
  std::uint32_t epoch = kEveryEpoch;  ///< newest epoch whose ranks are gone; ranks of a newer one
                                      ///< may run
  std::optional<Progress> progress;   ///< the ranks' report on their work, if the attempt stops
};

/// stopping -> queued or held: the job waits again.
struct JobRequeued {
  JobId job;
  Progress progress;
  Instant not_before;  ///< the job is held until then
};

/// The job ends: its phase becomes finished, failed or cancelled.
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
  bool window = false;  ///< drained only while a maintenance window lasts
  std::string why;      ///< reason given for a drain; empty: unchanged
};

/// A node came back with another boot id: all processes of the old boot are gone.
struct NodeBooted {
  NodeId node;
  std::uint64_t boot = 0;
};

/// A resource manager lends a node for a time, or does not: then `hold` is empty. Jobs are off the
/// node by `until`.
struct NodeLent {
  NodeId node;
  bool managed = true;  ///< false: the node is the cluster's own
  std::string hold;     ///< "MANAGER/KEY" (executor/holds/hold.hpp)
  Instant until = Instant::max();
  NodeHealth health = NodeHealth::kJoining;  ///< from now on
  JobId job;                                 ///< that alone may use it; invalid: any job
};

/// What it means for the cluster's jobs that others use a node.
enum class ForeignClaim : std::uint8_t {
  kNone,   ///< no other user has work on the node
  kNoted,  ///< it is shown and decides nothing: the node is not lent now, or only the cluster's own
  kTaken,  ///< no job is on the node until the others are done
};

inline std::array<EnumWord<ForeignClaim>, 3> enum_words(ForeignClaim) {
  return {{{"none", ForeignClaim::kNone},
           {"noted", ForeignClaim::kNoted},
           {"taken", ForeignClaim::kTaken}}};
}

/// Others, whom a resource manager serves, use a node from now on, or no longer do.
struct ForeignSet {
  NodeId node;
  ForeignClaim claim = ForeignClaim::kNone;
  Instant until = Instant::max();  ///< as far as the manager knows
  std::string who;                 ///< in the manager's words, for people
};

/// A hold has ended, and this is what its manager's records say of it. Each hold is billed once.
struct HoldBilled {
  std::string hold;         ///< as in NodeLent
  std::uint32_t nodes = 0;  ///< of the hold; 0: there is no record, and what control saw counts
  Instant from;             ///< time of the day, as the manager records it
  Instant to;
};

/// A node is kept back to replace lost ones, or returns to normal use.
struct SpareSet {
  NodeId node;
  bool spare = true;
};

struct LinkChanged {
  LinkId link;
  LinkState state;
};

/// The operator's cap of a power domain, or the remaining supply of the domain.
struct PowerLimitSet {
  PowerDomainId domain;
  enum class What : std::uint8_t { kCap, kSupply } what = What::kCap;
  std::optional<Watts> limit;
};

/// The tenants or the policy, as the text of their file.
struct TenantsSet {
  std::string yaml;
};
struct PolicySet {
  std::string yaml;
};

/// The fleet, as the text of its file: nodes were added or retired. Ids in later events are those
/// of the new fleet (fleet/fleet_map.hpp).
struct FleetSet {
  std::string yaml;
};

struct SlotsReserved {
  std::vector<Reservation> slots;
};

/// A plan search is done. Logs keep the key alone: the search is a function of the key and of the
/// facts named in a log's head, and State asks its PlanSource if `entry` is missing.
struct PlanFound {
  PlanKey key;
  std::shared_ptr<const PlanEntry> entry;
};

/// A decision of a pass was dropped because it no longer fits the present state.
struct DecisionDropped {
  JobId job;
  std::string why;
};

/// Nodes must be empty from `from` on.
struct MaintenanceSet {
  std::uint32_t window = 0;
  std::vector<NodeId> nodes;
  Instant from;
  Instant to;
  std::string why;
};

/// A node fails more often than chance explains.
struct LemonFound {
  NodeId node;
  std::uint32_t faults = 0;  ///< within the window
};

/// Sets why devices of a type are idle from now on (control/state/ledger.hpp).
struct IdleCauseSet {
  FleetTypeId type;
  std::uint8_t cause = 0;
};

/// Records when passes ran, so that the intervals between them survive a restart.
struct PassDone {
  PassKind kind = PassKind::kIncremental;
};

/// Ended jobs leave the state; what is known of them is kept elsewhere.
struct JobsArchived {
  std::vector<JobId> jobs;
};

/// The owner wants the job ended, but it is already stopping for another reason.
struct CancelAsked {
  JobId job;
};

/// Corrects the past work of a job that continues: time counted as useful is moved to its true
/// cause, and the job is done up to `progress.done`.
struct WorkSettled {
  JobId job;
  Progress progress;
};

/// The consequence of a claim that a job's ranks make against their node.
enum class ClaimVerdict : std::uint8_t {
  kRefused,    ///< the program is at fault
  kExcused,    ///< the job starts again as after a fault of the node, which stays in service
  kSuspected,  ///< the job restarts as if excused, and the node is out of service until its burn-in
               ///< passes
  kCleared,    ///< the suspicion was not confirmed
  kConfirmed,  ///< the node's own checks found a fault as well
};

inline std::array<EnumWord<ClaimVerdict>, 5> enum_words(ClaimVerdict) {
  return {{{"refused", ClaimVerdict::kRefused},
           {"excused", ClaimVerdict::kExcused},
           {"suspected", ClaimVerdict::kSuspected},
           {"cleared", ClaimVerdict::kCleared},
           {"confirmed", ClaimVerdict::kConfirmed}}};
}

/// The ranks of an attempt claim that their node is faulty.
struct NodeAccused {
  JobId job;
  std::uint32_t attempt = 0;
  NodeId node;
  ClaimVerdict verdict = ClaimVerdict::kRefused;  ///< not cleared or confirmed yet
  std::string evidence;                           ///< text that the program wrote
};

/// A job is kept from starting, or released. A queued job becomes held now; a job with devices
/// keeps them and is held when it next waits.
struct JobHoldSet {
  JobId job;
  JobHold hold = JobHold::kNone;
};

/// The owner or an operator changed a job that has not ended. All values are the new ones.
struct JobChanged {
  JobId job;
  std::int32_t priority = 0;
  std::optional<Duration> time_limit;
  std::optional<Duration> estimate;
  ClassId class_id;  ///< class of the request with these values
};

/// A job that waits was resolved again, because the fleet has changed: `request` takes the place of
/// its present one, but for the number of its array.
struct JobResolved {
  JobId job;
  JobRequest request;
};

/// A replica of a service reports itself: its phase, and where it answers.
struct ReplicaChanged {
  JobId job;
  ReplicaReport report;
};

/// What is kept with a job and decides nothing.
struct JobTexts {
  std::string spec;       ///< the owner's text
  std::string submitter;  ///< name of the token's user
  std::string run_as;     ///< POSIX user of its ranks; empty: the agent's own

  friend bool operator==(const JobTexts&, const JobTexts&) = default;
};

/// The comparisons by which a canary may be found worse (serving/canary.hpp).
struct CanaryGates {
  bool failures = true;
  bool latencies = true;
  bool quality = false;

  friend bool operator==(const CanaryGates&, const CanaryGates&) = default;
};

/// How a service is updated. Not both of the first two are 0.
struct RolloutTerms {
  std::uint32_t surge = 1;        ///< replicas that may exist beyond those wanted
  std::uint32_t unavailable = 0;  ///< of those wanted, how many need not be ready
  /// Stages of a canary: the share of requests that a new revision gets, in parts of 10,000,
  /// ascending. None: no canary.
  std::vector<std::uint32_t> canary{};
  Duration bake{};  ///< the least time that a stage lasts
  CanaryGates gates{};

  friend bool operator==(const RolloutTerms&, const RolloutTerms&) = default;
};

/// An update of a service begins, or goes another way: replicas of `revision` take the place of
/// others until there are `replicas` of them.
struct ServiceUpdating {
  JobId service;
  std::uint32_t revision = 1;  ///< a former one, or the next number
  Submission replica;          ///< of a replica of that revision
  JobTexts texts;
  std::uint32_t replicas = 1;
  RolloutTerms terms;
  std::string back;         ///< why the service goes back to a former revision; empty: it goes on
  std::uint32_t stage = 0;  ///< of the canary; as many as it has: its end, all replicas follow
};

/// The update of a service ends.
struct ServiceUpdated {
  JobId service;
  std::string outcome;  ///< why it is given up; empty: it reached what was wanted
};

/// The number of a service's replicas follows what its clients ask for.
struct ServiceScaled {
  JobId service;
  std::uint32_t before = 0;    ///< replicas that were wanted
  std::uint32_t replicas = 0;  ///< that are wanted; 0: its last one rests (JobHold::kResting)
  std::string why;
};

using Event =
    std::variant<JobSubmitted, JobReleased, JobStarted, JobRunning, JobResized, ClockSet,
                 JobStopping, DevicesFreed, JobRequeued, JobEnded, NodeChanged, NodeBooted,
                 SpareSet, LinkChanged, PowerLimitSet, TenantsSet, PolicySet, SlotsReserved,
                 PlanFound, DecisionDropped, MaintenanceSet, LemonFound, IdleCauseSet, PassDone,
                 CancelAsked, JobsArchived, WorkSettled, NodeAccused, JobHoldSet, JobChanged,
                 FleetSet, JobResolved, NodeLent, ForeignSet, HoldBilled, ReplicaChanged,
                 ServiceUpdating, ServiceUpdated, ServiceScaled>;

}  // namespace orrery
