// control/state/job.hpp - the life of one job as control keeps it.
//
// Created by the event JobSubmitted, changed by events alone (control/state/state.hpp). An ended
// job keeps its spec, its bill and the history of its attempts; its request is dropped. Invariant:
// a job is in exactly one phase and ends once; attempts and epochs only grow.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/format/field_reader.hpp"
#include "control/state/type_times.hpp"
#include "control/submission.hpp"
#include "scheduler/situation.hpp"
#include "serving/replica.hpp"

namespace orrery {

/// held | queued -> starting -> running -> stopping -> finished | failed | cancelled, and stopping
/// -> queued after a preemption, or a loss that allows a restart.
enum class JobPhase : std::uint8_t {
  kHeld,      ///< waits for a release, its dependencies, its turn in an array, or a backoff
  kQueued,    ///< waits for the scheduler
  kStarting,  ///< has devices; data, programs and ranks are not ready yet
  kRunning,
  kStopping,  ///< its ranks end; it still holds its devices
  kFinished,
  kFailed,
  kCancelled,
};

inline std::array<EnumWord<JobPhase>, 8> enum_words(JobPhase) {
  return {{{"held", JobPhase::kHeld},
           {"queued", JobPhase::kQueued},
           {"starting", JobPhase::kStarting},
           {"running", JobPhase::kRunning},
           {"stopping", JobPhase::kStopping},
           {"finished", JobPhase::kFinished},
           {"failed", JobPhase::kFailed},
           {"cancelled", JobPhase::kCancelled}}};
}

[[nodiscard]] constexpr bool ended(JobPhase phase) { return phase >= JobPhase::kFinished; }
[[nodiscard]] constexpr bool holds_devices(JobPhase phase) {
  return phase >= JobPhase::kStarting && phase <= JobPhase::kStopping;
}

/// Why an attempt ends.
enum class StopReason : std::uint8_t {
  kFinished,      ///< the program is done
  kProgram,       ///< the program's own fault: counts against restart.max
  kInfra,         ///< a node, link, power or storage fault
  kPreempted,     ///< another job is due
  kMoved,         ///< a rigid job continues elsewhere
  kPower,         ///< a power limit fell
  kDrained,       ///< its node is wanted for maintenance
  kCancelled,     ///< by its owner or the operator
  kTimeLimit,     ///< its own time limit
  kNeverStarted,  ///< its ranks could not be brought up
  kRefused,       ///< a node may not run it as its POSIX user; it is not retried
  kRequeued,      ///< its owner or an operator sent it back to the queue
};

inline std::array<EnumWord<StopReason>, 12> enum_words(StopReason) {
  return {{{"finished", StopReason::kFinished},
           {"program", StopReason::kProgram},
           {"infrastructure", StopReason::kInfra},
           {"preempted", StopReason::kPreempted},
           {"moved", StopReason::kMoved},
           {"power", StopReason::kPower},
           {"drained", StopReason::kDrained},
           {"cancelled", StopReason::kCancelled},
           {"time-limit", StopReason::kTimeLimit},
           {"never-started", StopReason::kNeverStarted},
           {"refused", StopReason::kRefused},
           {"requeued", StopReason::kRequeued}}};
}

/// What keeps a job from starting until it is released.
enum class JobHold : std::uint8_t {
  kNone,
  kOwner,     ///< every user that may cancel the job may release it
  kOperator,  ///< only an operator may release it
  kResting,   ///< the last replica of a service without requests; a request releases it
};

inline std::array<EnumWord<JobHold>, 4> enum_words(JobHold) {
  return {{{"none", JobHold::kNone},
           {"owner", JobHold::kOwner},
           {"operator", JobHold::kOperator},
           {"resting", JobHold::kResting}}};
}

/// How the rank that ended an attempt exited.
struct RankExit {
  std::uint32_t rank = 0;
  std::uint32_t status = 0;  ///< exit status; 128 + the signal that ended it

  friend bool operator==(const RankExit&, const RankExit&) = default;
};

/// Where the ranks of an attempt read the state they continue from.
enum class StateSource : std::uint8_t {
  kUnsaid,   ///< they started from nothing, or the source is not reported
  kStorage,  ///< a checkpoint on storage that all ranks can read
  kPeers,    ///< the copy of it in the memory of the attempt's own nodes
};

inline std::array<EnumWord<StateSource>, 3> enum_words(StateSource) {
  return {{{"unsaid", StateSource::kUnsaid},
           {"storage", StateSource::kStorage},
           {"peer-memory", StateSource::kPeers}}};
}

/// The layer to which a fault is attributed.
enum class FaultLayer : std::uint8_t {
  kNone,
  kProgram,
  kAccelerator,
  kHost,
  kNetwork,
  kStorage,
  kPower,
  kCooling,
  kController,
};

inline std::array<EnumWord<FaultLayer>, 9> enum_words(FaultLayer) {
  return {{{"none", FaultLayer::kNone},
           {"program", FaultLayer::kProgram},
           {"accelerator", FaultLayer::kAccelerator},
           {"host", FaultLayer::kHost},
           {"network", FaultLayer::kNetwork},
           {"storage", FaultLayer::kStorage},
           {"power", FaultLayer::kPower},
           {"cooling", FaultLayer::kCooling},
           {"controller", FaultLayer::kController}}};
}

/// The presumed cause of a fault and the evidence for it.
struct Blame {
  FaultLayer layer = FaultLayer::kNone;
  NodeId node;           ///< none: no single node
  std::string evidence;  ///< "exit status 139 of rank 3", "xid 79", "5 heartbeats missed"
};

/// One attempt of a job: when, where, and how it ended.
struct Attempt {
  std::uint32_t number = 0;
  Instant started;                   ///< when it received its devices
  Instant running = Instant::max();  ///< when every rank was up for the first time
  Instant stopped = Instant::max();  ///< when its ranks ended or were ordered to end
  StopReason reason = StopReason::kFinished;
  Blame blame;
  std::optional<RankExit> exit;  ///< none: it was ended from outside, or the exit is unknown
  JobId in_favour_of;            ///< job it was preempted for; none: no single one
  std::vector<NodeId> nodes;     ///< nodes of all its epochs, ascending
  /// What the replica of a service reported; none: nothing, or it is no replica.
  std::optional<ReplicaState> replica = std::nullopt;
};

/// The newest terms of a job's request, without its devices.
struct JobTerms {
  JobKind kind = JobKind::kBatch;
  std::int32_t priority = 0;
  std::optional<Duration> time_limit;
  std::optional<Duration> estimate;
};

[[nodiscard]] inline JobTerms terms_of(const JobRequest& request) {
  return {request.kind, request.priority, request.time_limit, request.estimate};
}

/// How many attempts a job keeps, the newest; their numbers show how many came before.
inline constexpr std::size_t kAttemptsKept = 32;

/// How far a job's work is in its newest good copy, and what was lost beyond it.
struct Progress {
  double done = 0;
  Duration lost;        ///< lost run time, of all its devices
  Duration saving;      ///< time in which it stood still to write checkpoints
  Duration undetected;  ///< time in which it stood still unnoticed
};

/// What a job has used up to Job::metered.
struct JobUsage {
  Duration waited;      ///< held and queued, over all attempts
  TypeTimes devices;    ///< device time held, by type; a shared device counts as the share
  DeviceTime lost = 0;  ///< part of `devices` whose work was lost
  DeviceTime idle = 0;  ///< part spent starting, stopping, saving or standing still unnoticed
  /// Energy of its devices with their share of the nodes, at the sites' meters: cooling and losses
  /// (PUE) are included.
  double joules = 0;
  double dollars = 0;      ///< hire, electricity and egress
  double electricity = 0;  ///< part of `dollars` paid beside the hire, for owned devices
  double egress = 0;       ///< part of `dollars` for data brought from other sites
  double co2_grams = 0;
  std::uint32_t preemptions = 0;
  std::uint32_t faults = 0;  ///< faults of the infrastructure
  std::uint32_t program_faults = 0;
  std::uint32_t resizes = 0;

  JobUsage& operator+=(const JobUsage& other);
};

struct Job {
  JobId id;
  JobPhase phase = JobPhase::kHeld;
  StopReason stop = StopReason::kFinished;  ///< reason of the last attempt that stopped
  std::uint32_t attempt = 0;                ///< 0: never started
  std::uint32_t epoch = 0;                  ///< epoch of the attempt
  std::uint32_t waiting_for = 0;            ///< dependencies that are not met yet
  std::uint32_t at = 0;       ///< position in the running list, while the job is in it
  std::uint32_t leaving = 0;  ///< devices of earlier epochs that are not free yet
  Instant submitted;
  Instant since;       ///< start of the phase
  Instant metered;     ///< instant up to which `usage` counts
  Instant not_before;  ///< held until then by a backoff
  Instant first_start = Instant::max();
  Instant end = Instant::max();          ///< when its program ended or the job was abandoned
  double done = 0;                       ///< part of its work that is safe
  double attained = 0;                   ///< device-seconds of running so far
  DeviceUse use = DeviceUse::kStarting;  ///< cause that the ledger counts its devices under
  bool cancel = false;                   ///< the owner wants the job ended
  bool up = false;                       ///< every rank of the present epoch is up
  Progress progress;                     ///< progress of the attempt that stops
  Blame blame;                           ///< cause of the last unplanned stop
  JobUsage usage;
  std::shared_ptr<const Submission> submission;  ///< until it ends; passes share it
  std::string name;
  TenantId tenant;
  std::string spec;  ///< text that the owner wrote
  /// Placement of its newest attempt, by gang; only for jobs with a spec. Ended jobs keep it: their
  /// output lies on those nodes.
  std::vector<std::vector<NodeDevices>> placed;
  std::string submitter;  ///< name of the token's user; empty: the log is older than this field
  std::string run_as;     ///< POSIX user of its ranks; empty: the agent's own
  JobHold hold = JobHold::kNone;
  std::vector<Attempt> attempts;  ///< the newest kAttemptsKept of a job with a spec, ascending
  std::optional<JobTerms> terms;  ///< terms of its request, which is dropped when the job ends
  SiteSet data_at = 0;            ///< sites to which its data have been brought
};

/// Returns what the replica of a service reports in its present attempt; nullptr: nothing, or it is
/// no replica, or a rehearsal.
[[nodiscard]] inline const ReplicaState* replica_of(const Job& job) {
  if (job.attempts.empty() || job.attempts.back().number != job.attempt) return nullptr;
  const std::optional<ReplicaState>& replica = job.attempts.back().replica;
  return replica ? &*replica : nullptr;
}

}  // namespace orrery
