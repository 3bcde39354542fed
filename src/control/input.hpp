// control/input.hpp - everything that ever reaches control: commands of people, observations of
// executors, time, and decisions of passes made beside it.
//
// Made by the daemon's queues or by the twin, recorded by `--record`, encoded by control/codec.hpp.
// Values. Observations that name an attempt or epoch older than the present one are ignored.
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

/// An attempt that runs is ended and the job waits again, held or not.
struct RequeueJob {
  JobId job;
  std::uint32_t attempt = 0;  ///< an earlier one than the present has ended: nothing is left to do
  JobHold hold = JobHold::kNone;
};

/// All values are the new ones. A time limit that has passed ends the job.
struct ChangeJob {
  JobId job;
  std::int32_t priority = 0;
  std::optional<Duration> time_limit;
  std::optional<Duration> estimate;
  ClassId class_id;  ///< of the request with these values
};

/// ready -> draining: nothing new starts there; preemptible and restartable work yields when
/// `at_once`, else the node is drained when its work ends.
struct DrainNode {
  NodeId node;
  bool at_once = false;
  std::string why;
};

/// Back to ready from draining, drained or quarantined.
struct ResumeNode {
  NodeId node;
};

/// The operator warrants that nothing runs on a lost node.
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

/// A Tenants file; every tenant that has unfinished jobs must stay.
struct SetTenants {
  std::string yaml;
};

struct SetPolicy {
  std::string yaml;
};

/// Nodes are to be empty between two instants: who would not be done by then does not start there,
/// who still runs there then is moved. No nodes: the window is off. Window 0: a new one.
struct SetMaintenance {
  std::uint32_t window = 0;
  std::vector<NodeId> nodes;
  Instant from;
  Instant to;
  std::string why;
};

/// Ended jobs are to leave the state; those that something still refers to stay.
struct ArchiveJobs {
  std::vector<JobId> jobs;
};

// --- Observations -------------------------------------------------------------------------------

/// Every rank of an epoch is up.
struct RanksUp {
  JobId job;
  std::uint32_t attempt = 0;
  std::uint32_t epoch = 0;
  StateSource source = StateSource::kUnsaid;  ///< of what they go on from
};

/// How the ranks of an attempt ended by themselves.
enum class ExitKind : std::uint8_t {
  kDone,
  kProgram,
  kInfra,
  kClaim,    ///< by what the program wrote, the machine failed; anything else does not say so
  kRefused,  ///< the node may not run such a job; neither it nor the program is at fault
};

/// The program of an attempt has ended, on all nodes or because one rank pulled it down.
struct RanksEnded {
  JobId job;
  std::uint32_t attempt = 0;
  ExitKind kind = ExitKind::kDone;
  Blame blame;
  Progress progress;
  bool gone = false;             ///< and no process of it is left anywhere
  std::optional<RankExit> exit;  ///< of the rank that ended it
};

/// Keepers report that no process of an attempt is left on these nodes; empty: on none at all.
struct RanksGone {
  JobId job;
  std::uint32_t attempt = 0;
  std::vector<NodeId> nodes;
  std::optional<Progress> progress;  ///< of an end that was asked for, as far as they know
  /// Newest of which none is left: a later one may have brought others there.
  std::uint32_t epoch = kEveryEpoch;
};

/// What became of an attempt's work before its present epoch, where that is not what it seemed: it
/// stood and nobody knew, or it was wrong. Told once an epoch, in time of the devices it has now.
struct WorkReported {
  JobId job;
  std::uint32_t attempt = 0;
  Progress progress;  ///< `done`: what it goes on from now
};

/// An agent registered: the node is there, with nothing running but `adopted` attempts.
struct NodeJoined {
  NodeId node;
  std::uint64_t boot = 0;
};

/// Heartbeats are missing (suspect, lost) or came back (ready).
struct NodeHeard {
  NodeId node;
  NodeHealth health = NodeHealth::kReady;
  std::uint32_t missed = 0;
};

/// Something is wrong with a node, as its health checks, its jobs or its neighbours show.
struct NodeFault {
  NodeId node;
  FaultLayer layer = FaultLayer::kHost;
  std::string evidence;
  bool repair = false;     ///< it cannot take work before somebody has mended it
  bool stops_jobs = true;  ///< what runs on it is gone or wrong
  /// The job whose ranks say so, with nothing else behind it; none: the node's own checks do.
  JobId claimed_by;
  std::uint32_t attempt = 0;  ///< of that job
};

struct NodeRepaired {
  NodeId node;
};

struct LinkObserved {
  LinkId link;
  LinkState state;
};

/// What the units left of a feed, UPS or cooling loop carry; none: all work.
struct SupplyObserved {
  PowerDomainId domain;
  std::optional<Watts> supply;
};

// --- Time and proposals -------------------------------------------------------------------------

/// Time has come to `at` (Input); timers fire, and a pass runs if something changed.
struct Tick {};

/// A full pass on an earlier state, as of version `version`.
struct Proposal {
  std::uint64_t version = 0;
  PassResult result;
};

/// A plan search that control asked for.
struct PlanReady {
  PlanKey key;
  std::shared_ptr<const PlanEntry> entry;
};

using InputKind =
    std::variant<SubmitJob, CancelJob, DrainNode, ResumeNode, FenceNode, SetSpare, SetPowerCap,
                 SetTenants, SetPolicy, SetMaintenance, RanksUp, RanksEnded, RanksGone, NodeJoined,
                 NodeHeard, NodeFault, NodeRepaired, LinkObserved, SupplyObserved, Tick, Proposal,
                 PlanReady, ArchiveJobs, WorkReported, HoldJob, RequeueJob, ChangeJob>;

struct Input {
  Instant at;  ///< never before that of the input before it
  InputKind what;
  std::string request_id;  ///< of a command, made by the client; empty: not to be remembered
};

}  // namespace orrery
