// control/job.hpp - the life of one job as control keeps it.
//
// Made by the event JobSubmitted, changed by events alone (control/state.hpp). An ended job keeps
// its spec, its bill and the history of its attempts; the request is let go.
// Invariant: a job is in exactly one phase and ends once; attempts and epochs only grow.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/field_reader.hpp"
#include "control/submission.hpp"
#include "control/type_times.hpp"
#include "scheduler/situation.hpp"

namespace orrery {

/// held | queued -> starting -> running -> stopping -> finished | failed | cancelled, and
/// stopping -> queued after a preemption or a loss it may be started again after.
enum class JobPhase : std::uint8_t {
  kHeld,      ///< waits for a release, jobs before it, its turn in an array, or a backoff
  kQueued,    ///< waits for the scheduler
  kStarting,  ///< has devices; data, programs and ranks are on their way
  kRunning,
  kStopping,  ///< its ranks end; devices are still its own
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
  kPreempted,     ///< somebody else is due
  kMoved,         ///< a rigid job goes on elsewhere
  kPower,         ///< a limit fell
  kDrained,       ///< its node is wanted for maintenance
  kCancelled,     ///< by its owner or the operator
  kTimeLimit,     ///< its own
  kNeverStarted,  ///< its ranks could not be brought up
  kRefused,       ///< a node may not run it as the user it asks for: it is not tried again
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

/// Who keeps a job from starting until it is released.
enum class JobHold : std::uint8_t {
  kNone,
  kOwner,     ///< each user who may cancel the job may release it
  kOperator,  ///< only an operator may release it
};

inline std::array<EnumWord<JobHold>, 3> enum_words(JobHold) {
  return {{{"none", JobHold::kNone}, {"owner", JobHold::kOwner}, {"operator", JobHold::kOperator}}};
}

/// How the rank that ended an attempt exited.
struct RankExit {
  std::uint32_t rank = 0;
  std::uint32_t status = 0;  ///< exit status; 128 + the signal that ended it

  friend bool operator==(const RankExit&, const RankExit&) = default;
};

/// Where the ranks of an attempt found the state they go on from.
enum class StateSource : std::uint8_t {
  kUnsaid,   ///< they began anew, or nobody says
  kStorage,  ///< a checkpoint where all can read it
  kPeers,    ///< the copy of it in the memory of the attempt's own nodes
};

inline std::array<EnumWord<StateSource>, 3> enum_words(StateSource) {
  return {{{"unsaid", StateSource::kUnsaid},
           {"storage", StateSource::kStorage},
           {"peer-memory", StateSource::kPeers}}};
}

/// The layer a fault is laid at.
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

/// What is held to be the cause, and on what ground.
struct Blame {
  FaultLayer layer = FaultLayer::kNone;
  NodeId node;           ///< none: no single one
  std::string evidence;  ///< "exit status 139 of rank 3", "xid 79", "5 heartbeats missed"
};

/// One attempt of a job: when, where, and how it ended.
struct Attempt {
  std::uint32_t number = 0;
  Instant started;                   ///< its devices were given to it
  Instant running = Instant::max();  ///< every rank was up for the first time
  Instant stopped = Instant::max();  ///< its ranks ended, or were told to
  StopReason reason = StopReason::kFinished;
  Blame blame;
  std::optional<RankExit> exit;  ///< none: it was ended from outside, or it is unknown
  JobId in_favour_of;            ///< the job it was preempted for; none: no single one
  std::vector<NodeId> nodes;     ///< ascending, of all its epochs
};

/// What a job asked for last, beside its devices.
struct JobTerms {
  JobKind kind = JobKind::kBatch;
  std::int32_t priority = 0;
  std::optional<Duration> time_limit;
  std::optional<Duration> estimate;
};

[[nodiscard]] inline JobTerms terms_of(const JobRequest& request) {
  return {request.kind, request.priority, request.time_limit, request.estimate};
}

/// The newest attempts that a job keeps; their numbers tell how many came before.
inline constexpr std::size_t kAttemptsKept = 32;

/// Part of its work as found at the newest good copy, and what was lost with the rest.
struct Progress {
  double done = 0;
  Duration lost;        ///< run time, of all its devices
  Duration saving;      ///< in which it stood for checkpoints
  Duration undetected;  ///< in which it stood before anybody knew
};

/// What a job has used up to Job::metered.
struct JobUsage {
  Duration waited;      ///< held and queued, over all attempts
  TypeTimes devices;    ///< allocated, by type; of shared ones its share
  DeviceTime lost = 0;  ///< of it, work done and lost
  DeviceTime idle = 0;  ///< of it, starting, leaving, saving, waiting for notice of a fault
  /// Energy of its devices with their share of the nodes, at the meters of the sites: cooling and
  /// losses are included (PUE).
  double joules = 0;
  double dollars = 0;      ///< hire, electricity and egress
  double electricity = 0;  ///< of the dollars, paid beside the hire of what is owned
  double egress = 0;       ///< of the dollars, for data brought from other sites
  double co2_grams = 0;
  std::uint32_t preemptions = 0;
  std::uint32_t faults = 0;  ///< of the infrastructure
  std::uint32_t program_faults = 0;
  std::uint32_t resizes = 0;

  JobUsage& operator+=(const JobUsage& other);
};

struct Job {
  JobId id;
  JobPhase phase = JobPhase::kHeld;
  StopReason stop = StopReason::kFinished;  ///< of the last attempt that stopped
  std::uint32_t attempt = 0;                ///< 0: never started
  std::uint32_t epoch = 0;                  ///< of the attempt
  std::uint32_t waiting_for = 0;            ///< jobs before it that have not finished
  std::uint32_t at = 0;                     ///< position among the running, while it is there
  std::uint32_t leaving = 0;                ///< devices of earlier epochs that are not free yet
  Instant submitted;
  Instant since;       ///< of the phase
  Instant metered;     ///< up to when `usage` counts
  Instant not_before;  ///< held until then by a backoff
  Instant first_start = Instant::max();
  Instant end = Instant::max();          ///< when its program ended, or it was given up
  double done = 0;                       ///< part of its work that is safe
  double attained = 0;                   ///< device-seconds it has had, running
  DeviceUse use = DeviceUse::kStarting;  ///< what its devices count as
  bool cancel = false;                   ///< its owner wants it ended
  bool up = false;                       ///< every rank of the present epoch is up
  Progress progress;                     ///< of the attempt that stops
  Blame blame;                           ///< of the last stop that was not planned
  JobUsage usage;
  std::shared_ptr<const Submission> submission;  ///< until it ends; passes beside the core keep it
  std::string name;
  TenantId tenant;
  std::string spec;  ///< as its owner wrote it
  /// Where its newest attempt was put, by gang; of jobs with a spec, and kept when they have ended:
  /// there lies what they wrote.
  std::vector<std::vector<NodeDevices>> placed;
  std::string submitter;  ///< name of the token's user; empty: a log of before it was kept
  std::string run_as;     ///< POSIX user of its ranks; empty: the agent's own
  JobHold hold = JobHold::kNone;
  std::vector<Attempt> attempts;  ///< the newest kAttemptsKept of a job with a spec, ascending
  std::optional<JobTerms> terms;  ///< of its request, which is let go when it ends
  SiteSet data_at = 0;            ///< sites to which its data have been brought
};

}  // namespace orrery
