// control/input.hpp - everything that ever reaches control: commands of users and operators,
// observations of executors, time, and decisions of passes made beside it.
//
// Inputs are made by the daemon's queues or by the twin, recorded by `--record`, and encoded by
// control/codec/codec.hpp. Plain values. An observation that names an old attempt or epoch is
// ignored.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "control/event.hpp"

namespace orrery {

// --- Commands -----------------------------------------------------------------------------------

struct SubmitJob {
  Submission submission;
  std::string spec;       ///< kept with the job until it ends; decides nothing
  std::string submitter;  ///< name of the token's user; decides nothing
  std::string run_as;     ///< POSIX user of its ranks; empty: the agent's own; decides nothing
};

struct CancelJob {
  JobId job;
};

/// Holds a job, or releases it (kNone).
struct HoldJob {
  JobId job;
  JobHold hold = JobHold::kOwner;
};

/// Ends the running attempt; the job waits again, held or not.
struct RequeueJob {
  JobId job;
  std::uint32_t attempt = 0;  ///< attempt to end; one older than the present has ended: no effect
  JobHold hold = JobHold::kNone;
};

/// Changes a job. All values are the new ones. A time limit that has passed ends the job.
struct ChangeJob {
  JobId job;
  std::int32_t priority = 0;
  std::optional<Duration> time_limit;
  std::optional<Duration> estimate;
  ClassId class_id;  ///< class of the request with these values
};

/// Gives a job that waits another request of the same text, resolved against the present fleet.
struct ResolveJob {
  JobId job;
  JobRequest request;
};

/// ready -> draining: nothing new starts on the node. With `at_once`, preemptible and restartable
/// jobs are preempted; otherwise the node is drained when its jobs end.
struct DrainNode {
  NodeId node;
  bool at_once = false;
  std::string why;
};

/// Returns a node to ready from draining, drained or quarantined.
struct ResumeNode {
  NodeId node;
};

/// The operator guarantees that nothing runs on a lost node.
struct FenceNode {
  NodeId node;
};

struct SetSpare {
  NodeId node;
  bool spare = true;
};

struct SetPowerCap {
  PowerDomainId domain;
  std::optional<Watts> cap;
};

/// Sets a Tenants file; each tenant with unfinished jobs must still be in it.
struct SetTenants {
  std::string yaml;
};

/// Sets a Fleet file. Sites, accelerator types and nodes that stay keep their order; nodes that go
/// must be empty.
struct SetFleet {
  std::string yaml;
};

struct SetPolicy {
  std::string yaml;
};

/// Nodes must be empty between two instants: a job that would not end before `from` does not start
/// there, and a job that still runs there at `from` is moved. No nodes: the window is cancelled.
/// Window 0: a new one.
struct SetMaintenance {
  std::uint32_t window = 0;
  std::vector<NodeId> nodes;
  Instant from;
  Instant to;
  std::string why;
};

/// Removes ended jobs from the state, except those that the state still refers to.
struct ArchiveJobs {
  std::vector<JobId> jobs;
};

// --- Observations -------------------------------------------------------------------------------

/// Every rank of an epoch is up.
struct RanksUp {
  JobId job;
  std::uint32_t attempt = 0;
  std::uint32_t epoch = 0;
  StateSource source = StateSource::kUnsaid;  ///< where the ranks read the state they continue from
};

/// How the ranks of an attempt ended without a stop command.
enum class ExitKind : std::uint8_t {
  kDone,
  kProgram,
  kInfra,
  kClaim,    ///< the program's output says that the machine failed; nothing else confirms it
  kRefused,  ///< the node may not run such a job; neither it nor the program is at fault
};

/// The program of an attempt has ended, on all nodes or because one failing rank ended the others.
struct RanksEnded {
  JobId job;
  std::uint32_t attempt = 0;
  ExitKind kind = ExitKind::kDone;
  Blame blame;
  Progress progress;
  bool gone = false;             ///< no process of it is left on any node
  std::optional<RankExit> exit;  ///< exit of the rank that ended it
};

/// Keepers report that no process of an attempt is left on these nodes; empty: on any node.
struct RanksGone {
  JobId job;
  std::uint32_t attempt = 0;
  std::vector<NodeId> nodes;
  std::optional<Progress> progress;  ///< known work, if the stop was requested
  /// Newest epoch of which no process is left; a later epoch may have processes there.
  std::uint32_t epoch = kEveryEpoch;
};

/// Corrects an attempt's work before its present epoch: time in which it stood still undetected, or
/// work that was wrong. Sent once an epoch, in time of the devices it has now.
struct WorkReported {
  JobId job;
  std::uint32_t attempt = 0;
  Progress progress;  ///< `done`: the part of the work it continues from
};

/// An agent registered: its node is up. Another boot id than before means that nothing of the old
/// boot runs.
struct NodeJoined {
  NodeId node;
  std::uint64_t boot = 0;
};

/// A node's heartbeats are missing (suspect, lost) or have come back (ready).
struct NodeHeard {
  NodeId node;
  NodeHealth health = NodeHealth::kReady;
  std::uint32_t missed = 0;
};

/// A fault of a node, as its health checks, its jobs or its neighbours show.
struct NodeFault {
  NodeId node;
  FaultLayer layer = FaultLayer::kHost;
  std::string evidence;
  bool repair = false;     ///< the node takes no work before it is repaired
  bool stops_jobs = true;  ///< the jobs on it are gone or wrong
  /// The job whose ranks alone report the fault; none: the node's own checks found it.
  JobId claimed_by;
  std::uint32_t attempt = 0;  ///< attempt of that job
};

struct NodeRepaired {
  NodeId node;
};

/// A resource manager lends the node until then, as part of a hold. Repeated with another `until`,
/// it changes the time. Without a hold: the node is the cluster's own, no manager's any more.
struct NodeGranted {
  NodeId node;
  std::string hold;  ///< "MANAGER/KEY:ID" (executor/holds/hold_table.hpp)
  Instant until = Instant::max();
  JobId job;  ///< for which it is lent; invalid: for any job
};

/// A resource manager does not lend the node: it has never done so, or takes it back. This is no
/// fault of the node.
struct NodeAbsent {
  NodeId node;
  bool gone = false;  ///< no process of a hold is left there, which the manager proves
  std::string why;
};

/// A resource manager tells who else uses a node.
struct ForeignUse {
  NodeId node;
  ForeignClaim claim = ForeignClaim::kNone;
  Instant until = Instant::max();
  std::string who;
};

/// A resource manager's records show that a hold has ended. A hold that was billed is passed over.
struct HoldRecorded {
  std::string hold;
  std::uint32_t nodes = 0;
  Instant from;
  Instant to;
};

struct LinkObserved {
  LinkId link;
  LinkState state;
};

/// What the remaining units of a feed, UPS or cooling loop can carry; none: all units work.
struct SupplyObserved {
  PowerDomainId domain;
  std::optional<Watts> supply;
};

/// A replica of a service reports itself; a repeated report, or one of an earlier attempt, has no
/// effect.
struct ReplicaSeen {
  JobId job;
  std::uint32_t attempt = 0;
  ReplicaReport report;
};

/// Gives a service another revision, or another number of replicas.
struct UpdateService {
  JobId job;           ///< a replica of the service
  Submission replica;  ///< of a replica of the new revision
  JobTexts texts;      ///< of the new revision; an empty spec: the present revision stays
  std::uint32_t replicas = 1;
  RolloutTerms terms;
  /// Number of a revision of the service, of which the texts are other terms: its replicas stay. 0:
  /// the texts are those of a known revision, or of a new one.
  std::uint32_t revision = 0;
};

/// A stage of a service's canary ends: it may have more requests, or its revision is given up. A
/// verdict on another stage or revision than the present one has no effect.
struct CanaryVerdict {
  JobId service;
  std::uint32_t revision = 0;
  std::uint32_t stage = 0;
  enum class Of : std::uint8_t { kPromote, kGiveUp } of = Of::kPromote;
  std::string why;  ///< it is given up
};

/// Gives a service another number of replicas, of its present revision. No effect while another
/// revision takes the place of the present one, and where the service is as wanted.
struct ScaleOrder {
  JobId service;
  std::uint32_t replicas = 0;  ///< 0: its last one rests, without devices, until more are wanted
  std::string why;
};

// --- Time and proposals -------------------------------------------------------------------------

/// Time has advanced to `at` (Input); timers fire, and a pass runs if something changed.
struct Tick {};

/// The result of a full pass on an earlier state, the one of `version`.
struct Proposal {
  std::uint64_t version = 0;
  PassResult result;
};

/// The result of a plan search that control requested.
struct PlanReady {
  PlanKey key;
  std::shared_ptr<const PlanEntry> entry;
};

using InputKind =
    std::variant<SubmitJob, CancelJob, DrainNode, ResumeNode, FenceNode, SetSpare, SetPowerCap,
                 SetTenants, SetPolicy, SetMaintenance, RanksUp, RanksEnded, RanksGone, NodeJoined,
                 NodeHeard, NodeFault, NodeRepaired, LinkObserved, SupplyObserved, Tick, Proposal,
                 PlanReady, ArchiveJobs, WorkReported, HoldJob, RequeueJob, ChangeJob, SetFleet,
                 ResolveJob, NodeGranted, NodeAbsent, ForeignUse, HoldRecorded, ReplicaSeen,
                 UpdateService, CanaryVerdict, ScaleOrder>;

struct Input {
  Instant at;  ///< never before that of the previous input
  InputKind what;
  std::string request_id;  ///< id the client gave a command; empty: not remembered
};

}  // namespace orrery
