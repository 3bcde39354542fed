#include "control/jobs/job_life.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/format/field_writer.hpp"
#include "control/codec/codec.hpp"

namespace orrery {
namespace {

constexpr const char* kNothingLeft = "nothing of it is left there";

/// Whether no node has ranks of the job any more.
bool holds_nothing(const RunningJob& run) {
  return std::all_of(run.gangs.begin(), run.gangs.end(),
                     [](const PlacedGang& gang) { return gang.allocation.ranks.empty(); });
}

std::vector<NodeId> nodes_of(const RunningJob& run) {
  std::vector<NodeId> nodes;
  for (const PlacedGang& gang : run.gangs) {
    for (const NodeDevices& at : gang.allocation.ranks) nodes.push_back(at.node);
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

/// Returns what is reported of an end; a replica of a service has no end of its own, so one that
/// ends by itself has failed, whatever its status is.
RanksEnded with_failed_replica(RanksEnded told, const Job& job) {
  if (told.kind != ExitKind::kDone || replica_of(job) == nullptr) return told;
  told.kind = ExitKind::kProgram;
  told.blame = {FaultLayer::kProgram, {}, "the replica ended by itself, with exit status 0"};
  return told;
}

/// Returns how long a job waits before it starts again after a fault of its program.
Duration backoff_of(const Job& job, const ControlTiming& timing) {
  Duration wait = timing.backoff;
  for (std::uint32_t i = 1; i < job.usage.program_faults && wait < timing.backoff_max; ++i) {
    wait = wait * 2;
  }
  return std::min(wait, timing.backoff_max);
}

/// Returns how long the ranks have between SIGTERM and SIGKILL. A replica ends the requests it has.
Duration grace_of(const Job& job, StopReason reason, const ControlTiming& timing) {
  if (reason == StopReason::kInfra || reason == StopReason::kTimeLimit) return {};
  const ReplicaState* replica = replica_of(job);
  const bool serves = replica != nullptr && replica->report.phase >= ReplicaPhase::kReady;
  return serves ? std::max(timing.grace, timing.drain) : timing.grace;
}

}  // namespace

std::string_view unmet_text(JobPhase phase) {
  if (phase == JobPhase::kFinished) return "finished, and not failed";
  return phase == JobPhase::kFailed ? "failed" : "been cancelled";
}

std::string contradiction(const State& state, JobId id, std::uint32_t attempt) {
  if (!state.has(id)) return "no such job";
  const Job& job = state.job(id);
  if (attempt <= job.attempt) return {};
  return fmt::format("attempt {} of job {} never began", attempt, id.value());
}

// --- Commands -----------------------------------------------------------------------------------

void JobLife::on(const SubmitJob& command) {
  if (!recorder_.request_id().empty()) {
    if (const std::optional<JobId> known = state_.answered(recorder_.request_id())) {
      recorder_.answer(*known);
      return;
    }
  }
  const Submission& asked = command.submission;
  for (const std::vector<JobId>* list : {&asked.after, &asked.after_any, &asked.after_notok}) {
    for (const JobId before : *list) {
      if (!state_.has(before)) return recorder_.refuse("a job to wait for is not known");
      if (state_.dependency(asked, before) != Dependency::kNever) continue;
      const Job& over = state_.job(before);
      return recorder_.refuse(
          fmt::format("job \"{}\" to wait for has {}", over.name, unmet_text(over.phase)));
    }
  }
  recorder_.answer(submit(command, recorder_.request_id()));
}

JobId JobLife::submit(const SubmitJob& command, const std::string& request_id) {
  const JobId id = JobId::at(state_.setup().next_job(state_.jobs()));
  recorder_.emit(JobSubmitted{id, command.submission, request_id, command.spec, command.submitter,
                              command.run_as});
  release_if_due(id);
  return id;
}

// The owner decides what becomes of the other replicas: none takes the place of this one.
void JobLife::on(const CancelJob& command) {
  if (!state_.has(command.job)) return recorder_.refuse("no such job");
  const Job& job = state_.job(command.job);
  if (ended(job.phase) || job.cancel) return;
  const ReplicaMembership* member = state_.services().membership(command.job);
  const bool leaves = job.phase == JobPhase::kStopping && job.stop == StopReason::kCancelled;
  if (member != nullptr && !leaves && state_.services().updating().contains(member->service)) {
    recorder_.emit(ServiceUpdated{
        member->service, fmt::format("job {} ({}) was cancelled", job.id.value(), job.name)});
  }
  cancel(command.job);
}

void JobLife::cancel(JobId id) {
  const Job& job = state_.job(id);
  if (!holds_devices(job.phase)) {
    end(id, JobPhase::kCancelled, {job.done, {}, {}, {}});
  } else if (job.phase == JobPhase::kStopping) {
    recorder_.emit(CancelAsked{id});
    finish_if_gone(id);
  } else {
    stop(id, StopReason::kCancelled, {});
  }
}

void JobLife::rest(JobId id) {
  const Job& job = state_.job(id);
  if (job.hold != JobHold::kNone) return;
  recorder_.emit(JobHoldSet{id, JobHold::kResting});
  if (holds_devices(job.phase) && job.phase != JobPhase::kStopping) {
    stop(id, StopReason::kRequeued, {});
  }
}

void JobLife::on(const HoldJob& command) {
  if (!state_.has(command.job)) return recorder_.refuse("no such job");
  const Job& job = state_.job(command.job);
  if (ended(job.phase)) return recorder_.refuse("the job has ended");
  // An owner's hold does not replace an operator's.
  const bool weaker = job.hold == JobHold::kOperator && command.hold == JobHold::kOwner;
  if (job.hold == command.hold || weaker) return;
  const ArrayId array = job.submission->request.array;
  recorder_.emit(JobHoldSet{command.job, command.hold});
  release_if_due(command.job);
  release_of(array);
}

void JobLife::on(const RequeueJob& command) {
  if (!state_.has(command.job)) return recorder_.refuse("no such job");
  const Job& job = state_.job(command.job);
  if (ended(job.phase)) return recorder_.refuse("the job has ended");
  // The command arrived twice, or too late.
  const bool done = command.attempt < job.attempt ||
                    (job.phase == JobPhase::kStopping && job.stop == StopReason::kRequeued);
  if (!done && !holds_devices(job.phase)) {
    return recorder_.refuse(fmt::format("the job does not run: it is {}", word_of(job.phase)));
  }
  if (!done && job.phase == JobPhase::kStopping) {
    return recorder_.refuse("the job is stopping already");
  }
  if (!done && job.submission->restart == RestartPolicy::kNever) {
    return recorder_.refuse("restart.policy of the job is never: it may not run twice");
  }
  if (command.hold > job.hold) {
    const ArrayId array = job.submission->request.array;
    recorder_.emit(JobHoldSet{command.job, command.hold});
    release_of(array);
  }
  if (!done) stop(command.job, StopReason::kRequeued, {});
}

void JobLife::on(const ChangeJob& command) {
  if (!state_.has(command.job)) return recorder_.refuse("no such job");
  const Job& job = state_.job(command.job);
  if (ended(job.phase)) return recorder_.refuse("the job has ended");
  const JobRequest& now = job.submission->request;
  if (now.priority == command.priority && now.time_limit == command.time_limit &&
      now.estimate == command.estimate) {
    return;
  }
  recorder_.emit(JobChanged{command.job, command.priority, command.time_limit, command.estimate,
                            command.class_id});
  // The timer of the former limit fires and finds that this limit no longer applies.
  if (command.time_limit && job.phase == JobPhase::kRunning) {
    parts_.timers.set(job.since + *command.time_limit, command.job);
  }
}

// A job with devices keeps its request: its placement names the options of that one.
bool JobLife::resolve(const ResolveJob& command) {
  const auto refused = [this](const char* why) {
    recorder_.refuse(why);
    return false;
  };
  if (!state_.has(command.job)) return refused("no such job");
  const Job& job = state_.job(command.job);
  if (ended(job.phase)) return refused("the job has ended");
  if (holds_devices(job.phase)) return refused("the job has devices");
  if (same_fields(job.submission->request, command.request)) return false;
  recorder_.emit(JobResolved{command.job, command.request});
  parts_.replacement.recall(job);
  return true;
}

// --- Reports of executors -----------------------------------------------------------------------

// Returns the reported progress unless it is impossible. Safe work stays safe unless the report
// says that it was lost.
Progress JobLife::believed(const Job& job, const Progress& told) {
  const bool possible = told.done >= 0 && told.done <= 1 && told.lost >= Duration() &&
                        told.saving >= Duration() && told.undetected >= Duration();
  const bool falls = told.done < job.done && told.lost == Duration();
  if (possible && !falls) return told;
  recorder_.refuse(
      fmt::format("job {} cannot be {} done after {}", job.id.value(), told.done, job.done));
  return possible ? Progress{job.done, told.lost, told.saving, told.undetected}
                  : Progress{job.done, {}, {}, {}};
}

void JobLife::on(const WorkReported& seen) {
  if (std::string why = contradiction(state_, seen.job, seen.attempt); !why.empty()) {
    return recorder_.refuse(why);
  }
  const Job& job = state_.job(seen.job);
  const bool between = holds_devices(job.phase) && !job.up && seen.attempt == job.attempt;
  if (!between) return recorder_.refuse("no epoch of it begins");
  recorder_.emit(WorkSettled{seen.job, believed(job, seen.progress)});
}

void JobLife::on(const ReplicaSeen& seen) {
  if (std::string why = contradiction(state_, seen.job, seen.attempt); !why.empty()) {
    return recorder_.refuse(why);
  }
  const Job& job = state_.job(seen.job);
  if (!holds_devices(job.phase) || seen.attempt != job.attempt) {
    return recorder_.refuse("the attempt has ended");
  }
  if (job.submission->request.kind != JobKind::kServe) {
    return recorder_.refuse("the job is no service");
  }
  if (job.attempts.empty()) return recorder_.refuse("the job is a rehearsal");
  // A replica goes on, once to each phase: reports of two nodes, or of two controllers' terms, may
  // cross, and no program fills the log.
  const ReplicaState* known = replica_of(job);
  if (known != nullptr && known->report.phase >= seen.report.phase) return;
  recorder_.emit(ReplicaChanged{seen.job, seen.report});
}

void JobLife::on(const RanksUp& seen) {
  if (std::string why = contradiction(state_, seen.job, seen.attempt); !why.empty()) {
    return recorder_.refuse(why);
  }
  const Job& job = state_.job(seen.job);
  const bool awaited = holds_devices(job.phase) && job.phase != JobPhase::kStopping && !job.up;
  if (!awaited || seen.attempt != job.attempt || seen.epoch != job.epoch) {
    return recorder_.refuse("these ranks are not awaited");
  }
  recorder_.emit(JobRunning{seen.job, seen.source});
  // The time limit is that of the attempt, for all its epochs.
  const std::optional<Duration> limit = state_.running(seen.job).request->time_limit;
  if (limit && seen.epoch == 0) parts_.timers.set(recorder_.now() + *limit, seen.job);
}

void JobLife::on(const RanksEnded& told) {
  if (std::string why = contradiction(state_, told.job, told.attempt); !why.empty()) {
    return recorder_.refuse(why);
  }
  const Job& job = state_.job(told.job);
  const bool present = holds_devices(job.phase) && told.attempt == job.attempt;
  const bool ends = present && job.phase != JobPhase::kStopping;
  const RanksEnded seen = ends ? with_failed_replica(parts_.claims.judged(told), job) : told;
  if (!ends && !seen.gone) return recorder_.refuse("this attempt has ended already");
  const Progress progress = present ? believed(job, seen.progress) : Progress();
  if (ends) {
    StopReason reason = StopReason::kFinished;
    if (seen.kind == ExitKind::kProgram) reason = StopReason::kProgram;
    if (seen.kind == ExitKind::kInfra) reason = StopReason::kInfra;
    if (seen.kind == ExitKind::kRefused) reason = StopReason::kRefused;
    if (reason == StopReason::kInfra) parts_.replacement.remember(seen.job);
    recorder_.emit(JobStopping{seen.job, reason, JobId(), seen.blame, progress, seen.exit});
  }
  if (!seen.gone) return;
  // The attempt may be one that was given up: it may have left ghosts.
  DevicesFreed freed{.job = seen.job, .attempt = seen.attempt};
  if (present) freed.progress = progress;
  if (!free_devices(std::move(freed))) recorder_.refuse(kNothingLeft);
  if (present) finish_if_gone(seen.job);
}

void JobLife::on(const RanksGone& seen) {
  if (std::string why = contradiction(state_, seen.job, seen.attempt); !why.empty()) {
    return recorder_.refuse(why);
  }
  const Job& job = state_.job(seen.job);
  const bool stops = seen.attempt == job.attempt && job.phase == JobPhase::kStopping;
  DevicesFreed freed{seen.job, seen.attempt, seen.nodes, seen.epoch, std::nullopt};
  if (stops && seen.progress) freed.progress = believed(job, *seen.progress);
  if (!free_devices(std::move(freed))) recorder_.refuse(kNothingLeft);
  if (stops) finish_if_gone(seen.job);
}

// --- Timers -------------------------------------------------------------------------------------

void JobLife::resume() {
  for (const JobId id : state_.held_jobs()) {
    // This includes a backoff that ended in the moment before: no event records that a timer fired.
    if (state_.job(id).waiting_for == 0) parts_.timers.set(state_.job(id).not_before, id);
  }
  for (const RunningJob& run : state_.running()) {
    const Job& job = state_.job(run.id);
    if (run.request->time_limit && job.phase == JobPhase::kRunning) {
      parts_.timers.set(job.since + *run.request->time_limit, run.id);
    }
  }
}

void JobLife::timer_fired(JobId id) {
  if (!state_.has(id)) return;
  const Job& job = state_.job(id);
  if (job.phase == JobPhase::kHeld) {
    release_if_due(id);
  } else if (job.phase == JobPhase::kRunning) {
    const std::optional<Duration> limit = state_.running(id).request->time_limit;
    if (limit && job.since + *limit <= recorder_.now()) stop(id, StopReason::kTimeLimit, {});
  }
}

// --- What follows -------------------------------------------------------------------------------

void JobLife::release_if_due(JobId id) {
  const Job& job = state_.job(id);
  if (job.phase != JobPhase::kHeld || job.waiting_for > 0) return;
  if (job.hold != JobHold::kNone) return;
  if (job.not_before > recorder_.now()) {
    parts_.timers.set(job.not_before, id);
    return;
  }
  const Submission& submission = *job.submission;
  const bool full = submission.request.array.valid() && submission.parallel > 0 &&
                    state_.active(submission.request.array) >= submission.parallel;
  if (full) return;
  recorder_.emit(JobReleased{id});
  ++queued_;
}

void JobLife::release_of(ArrayId array) {
  if (!array.valid()) return;
  for (const JobId id : state_.held_of(array)) release_if_due(id);
}

bool JobLife::free_devices(DevicesFreed freed) {
  if (!state_.has_ranks(freed)) return false;
  recorder_.emit(std::move(freed));
  parts_.emptying.settle();
  return true;
}

void JobLife::lose_part(JobId id, NodeId node, const Blame& blame) {
  const Job& job = state_.job(id);
  if (!holds_devices(job.phase)) return;
  if (job.phase == JobPhase::kStopping) return finish_if_gone(id);
  if (parts_.replacement.continue_without(id, node)) return;
  stop(id, StopReason::kInfra, blame);
  finish_if_gone(id);  // if the job had no other node, no further report may arrive
}

void JobLife::stop(JobId id, StopReason reason, const Blame& blame, JobId in_favour_of) {
  const Job& job = state_.job(id);
  if (reason == StopReason::kInfra) parts_.replacement.remember(id);
  recorder_.emit(
      JobStopping{id, reason, in_favour_of, blame, {job.done, {}, {}, {}}, std::nullopt});
  recorder_.act(StopRanks{id, job.attempt, grace_of(job, reason, state_.setup().timing), reason});
}

void JobLife::finish_if_gone(JobId id) {
  const Job& job = state_.job(id);
  if (job.phase != JobPhase::kStopping) return;
  const RunningJob& run = state_.running(id);
  // A fence protects the job's effects, or the job is cancelled.
  const bool let_go = job.submission->restart == RestartPolicy::kAtOnce || job.cancel ||
                      job.stop == StopReason::kCancelled;
  const bool over = job.stop == StopReason::kFinished || job.stop == StopReason::kTimeLimit ||
                    job.stop == StopReason::kRefused;
  if (job.leaving > 0 && !let_go && !over) return;  // an earlier epoch may still run
  bool done = holds_nothing(run);
  if (!done) {
    // The rest of the job is on lost nodes.
    const std::vector<NodeId> nodes = nodes_of(run);
    done = let_go && std::all_of(nodes.begin(), nodes.end(), [&](NodeId node) {
             return state_.node(node).health == NodeHealth::kLost;
           });
  }
  if (done) finish_stop(id);
}

void JobLife::finish_stop(JobId id) {
  const Job& job = state_.job(id);
  const Submission& submission = *job.submission;
  const Progress progress = job.progress;
  if (job.cancel || job.stop == StopReason::kCancelled) {
    return end(id, JobPhase::kCancelled, progress);
  }
  switch (job.stop) {
    case StopReason::kFinished:
      return end(id, JobPhase::kFinished, progress);
    case StopReason::kRefused:
      return end(id, JobPhase::kFailed, progress);
    case StopReason::kTimeLimit:
      return end(id, JobPhase::kFailed, progress, {FaultLayer::kProgram, NodeId(), "time limit"});
    case StopReason::kProgram:
      if (job.usage.program_faults > submission.restart_max ||
          submission.restart == RestartPolicy::kNever) {
        return end(id, JobPhase::kFailed, progress);
      }
      return requeue(id, progress, recorder_.now() + backoff_of(job, state_.setup().timing));
    case StopReason::kInfra:
    case StopReason::kNeverStarted: {
      if (submission.restart == RestartPolicy::kNever) {
        return end(id, JobPhase::kFailed, progress);
      }
      requeue(id, progress, recorder_.now());
      parts_.replacement.restart(id);
      return;
    }
    case StopReason::kPreempted:
    case StopReason::kMoved:
    case StopReason::kPower:
    case StopReason::kDrained:
    case StopReason::kRequeued:
      return requeue(id, progress, recorder_.now());
    case StopReason::kCancelled:
      return;
  }
}

void JobLife::requeue(JobId id, const Progress& progress, Instant not_before) {
  const ArrayId array = state_.job(id).submission->request.array;
  recorder_.emit(JobRequeued{id, progress, not_before});
  release_if_due(id);
  if (not_before > recorder_.now()) release_of(array);
}

// Jobs that waited for the ended job are released, or end as well: a chain of any length, so this
// does not recurse.
void JobLife::end(JobId id, JobPhase phase, const Progress& progress, Blame blame) {
  struct Ended {
    JobId job;
    ArrayId array;
    std::vector<JobId> next;
    std::size_t looked_at = 0;
  };
  std::vector<Ended> open;
  const auto end_one = [&](JobId job, JobPhase as, const Progress& with, Blame why) {
    const ArrayId array = state_.job(job).submission->request.array;
    parts_.replacement.forget(job);
    recorder_.emit(JobEnded{job, as, with, std::move(why)});
    open.push_back({job, array, {state_.after(job).begin(), state_.after(job).end()}});
  };
  end_one(id, phase, progress, std::move(blame));
  while (!open.empty()) {
    Ended& last = open.back();
    if (last.looked_at == last.next.size()) {
      const ArrayId array = last.array;
      open.pop_back();
      release_of(array);
      continue;
    }
    const JobId each = last.next[last.looked_at++];
    if (!state_.has(each) || ended(state_.job(each).phase)) continue;
    if (state_.dependency(*state_.job(each).submission, last.job) == Dependency::kMet) {
      release_if_due(each);
      continue;
    }
    const Job& before = state_.job(last.job);
    end_one(each, JobPhase::kCancelled, {},
            {FaultLayer::kProgram, NodeId(),
             fmt::format("it waited for job {} ({}), which has {}", before.id.value(), before.name,
                         unmet_text(before.phase))});
  }
}

}  // namespace orrery
