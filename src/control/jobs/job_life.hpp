// control/jobs/job_life.hpp - the life of jobs: submitted, released, started, running, stopping,
// ended or queued again.
//
// Commands and reports of executors move a job on, and so do its timers and the loss of its nodes.
// Reports may be late, repeated or wrong: one that contradicts the state has no effect.
// Invariants:
// 1. A job that stops holds devices until they are reported free, or can be given up: its effects
//    are fenced, or it is cancelled, and its nodes are lost.
// 2. A job ends once; the jobs that wait for it are released, or end as well, in the same input.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "control/core/core_timers.hpp"
#include "control/jobs/node_replacement.hpp"
#include "control/nodes/claims.hpp"
#include "control/nodes/emptying_nodes.hpp"
#include "control/recorder.hpp"

namespace orrery {

class JobLife {
 public:
  /// The classes that jobs depend on.
  struct Parts {
    CoreTimers& timers;
    EmptyingNodes& emptying;
    Claims& claims;
    NodeReplacement& replacement;
  };

  JobLife(Recorder& recorder, const Parts& parts)
      : recorder_(recorder), state_(recorder.state()), parts_(parts) {}

  void on(const SubmitJob& command);
  void on(const CancelJob& command);
  void on(const HoldJob& command);
  void on(const RequeueJob& command);
  void on(const ChangeJob& command);
  void on(const RanksUp& seen);
  void on(const RanksEnded& told);
  void on(const RanksGone& seen);
  void on(const WorkReported& seen);
  void on(const ReplicaSeen& seen);
  /// Gives a job another request; returns whether it has changed.
  [[nodiscard]] bool resolve(const ResolveJob& command);

  /// Submits a job, whose dependencies are possible; returns its number. `request_id`: the id of
  /// the request that it answers; empty: none.
  JobId submit(const SubmitJob& command, const std::string& request_id);
  /// Ends a job that has not ended.
  void cancel(JobId id);
  /// Lets a replica give its devices back, and holds it until HoldJob releases it. No effect on one
  /// that is held. Precondition: it has not ended.
  void rest(JobId id);
  /// Stops a running job.
  void stop(JobId id, StopReason reason, const Blame& blame, JobId in_favour_of = JobId());
  /// Frees devices and settles the nodes that become empty; returns whether there were any.
  bool free_devices(DevicesFreed freed);
  /// Ends or queues a stopping job again if nothing of it is left.
  void finish_if_gone(JobId id);
  /// Continues a job without a node that it has lost, or stops it.
  void lose_part(JobId id, NodeId node, const Blame& blame);

  /// Handles a timer of a job: a hold or a backoff is over, or a time limit is reached.
  void timer_fired(JobId id);
  /// Sets the timers of a core that resumes.
  void resume();
  /// How many jobs entered the queue.
  [[nodiscard]] std::uint64_t queued() const { return queued_; }

 private:
  void release_if_due(JobId id);
  void release_of(ArrayId array);
  [[nodiscard]] Progress believed(const Job& job, const Progress& told);
  void finish_stop(JobId id);
  void end(JobId id, JobPhase phase, const Progress& progress, Blame blame = {});
  void requeue(JobId id, const Progress& progress, Instant not_before);

  Recorder& recorder_;
  const State& state_;
  Parts parts_;
  std::uint64_t queued_ = 0;
};

/// Returns how a job ended that another one waits for in vain; the text goes after "which has ".
[[nodiscard]] std::string_view unmet_text(JobPhase phase);

/// Returns why a report about an attempt has no effect; empty: it may have one.
[[nodiscard]] std::string contradiction(const State& state, JobId id, std::uint32_t attempt);

}  // namespace orrery
