// The life of jobs: release, start, running, stop, devices freed, end or requeue.
#include <fmt/format.h>

#include <algorithm>

#include "base/assert.hpp"
#include "control/core/core.hpp"
#include "perf/training/goodput.hpp"

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

/// Returns how long a job waits before it starts again after a fault of its program.
Duration backoff_of(const Job& job, const ControlTiming& timing) {
  Duration wait = timing.backoff;
  for (std::uint32_t i = 1; i < job.usage.program_faults && wait < timing.backoff_max; ++i) {
    wait = wait * 2;
  }
  return std::min(wait, timing.backoff_max);
}

/// Returns the interval between checkpoints: that of the job, or the best one at a failure rate of
/// a node, in 1/s.
Duration checkpoint_interval(const Job& job, const StartJob& start, double rate) {
  const JobRequest& request = job.submission->request;
  const Duration cost = request.checkpoint_cost;
  const bool choose = job.submission->choose_interval && rate > 0 && cost > Duration();
  if (!choose) return request.checkpoint_interval;
  double nodes = 0;
  for (const PlacedGang& gang : start.gangs) {
    nodes += static_cast<double>(gang.allocation.ranks.size());
  }
  const Result<Seconds> best =
      daly_interval(Seconds(cost.count_seconds()), Seconds(1 / (rate * std::max(nodes, 1.0))));
  return best ? Duration::from_seconds(best->value()) : request.checkpoint_interval;
}

}  // namespace

std::string_view unmet_text(JobPhase phase) {
  if (phase == JobPhase::kFinished) return "finished, and not failed";
  return phase == JobPhase::kFailed ? "failed" : "been cancelled";
}

void Core::release_if_due(JobId id) {
  const Job& job = state_.job(id);
  if (job.phase != JobPhase::kHeld || job.waiting_for > 0) return;
  if (job.hold != JobHold::kNone) return;
  if (job.not_before > now_) {
    timers_.insert({job.not_before, id});
    return;
  }
  const Submission& submission = *job.submission;
  const bool full = submission.request.array.valid() && submission.parallel > 0 &&
                    state_.active(submission.request.array) >= submission.parallel;
  if (full) return;
  emit(JobReleased{id});
  ++queued_;
}

void Core::release_of(ArrayId array) {
  if (!array.valid()) return;
  for (const JobId id : state_.held_of(array)) release_if_due(id);
}

// --- Reports of executors: they may be late, repeated, or wrong
// -------------------------------------

// Returns why a report about an attempt has no effect; empty: it may have one.
std::string Core::contradiction(JobId id, std::uint32_t attempt) const {
  if (!state_.has(id)) return "no such job";
  const Job& job = state_.job(id);
  if (attempt <= job.attempt) return {};
  return fmt::format("attempt {} of job {} never began", attempt, id.value());
}

// Returns the reported progress unless it is impossible. Safe work stays safe unless the report
// says that it was lost.
Progress Core::believed(const Job& job, const Progress& told) {
  const bool possible = told.done >= 0 && told.done <= 1 && told.lost >= Duration() &&
                        told.saving >= Duration() && told.undetected >= Duration();
  const bool falls = told.done < job.done && told.lost == Duration();
  if (possible && !falls) return told;
  refuse(fmt::format("job {} cannot be {} done after {}", job.id.value(), told.done, job.done));
  return possible ? Progress{job.done, told.lost, told.saving, told.undetected}
                  : Progress{job.done, {}, {}, {}};
}

void Core::on(const RanksUp& seen) {
  if (std::string why = contradiction(seen.job, seen.attempt); !why.empty()) return refuse(why);
  const Job& job = state_.job(seen.job);
  const bool awaited = holds_devices(job.phase) && job.phase != JobPhase::kStopping && !job.up;
  if (!awaited || seen.attempt != job.attempt || seen.epoch != job.epoch) {
    return refuse("these ranks are not awaited");
  }
  emit(JobRunning{seen.job, seen.source});
  // The time limit is that of the attempt, for all its epochs.
  const std::optional<Duration> limit = state_.running(seen.job).request->time_limit;
  if (limit && seen.epoch == 0) timers_.insert({now_ + *limit, seen.job});
}

void Core::on(const RanksEnded& told) {
  if (std::string why = contradiction(told.job, told.attempt); !why.empty()) return refuse(why);
  const Job& job = state_.job(told.job);
  const bool present = holds_devices(job.phase) && told.attempt == job.attempt;
  const bool ends = present && job.phase != JobPhase::kStopping;
  const RanksEnded seen = ends ? judged(told) : told;
  if (!ends && !seen.gone) return refuse("this attempt has ended already");
  const Progress progress = present ? believed(job, seen.progress) : Progress();
  if (ends) {
    StopReason reason = StopReason::kFinished;
    if (seen.kind == ExitKind::kProgram) reason = StopReason::kProgram;
    if (seen.kind == ExitKind::kInfra) reason = StopReason::kInfra;
    if (seen.kind == ExitKind::kRefused) reason = StopReason::kRefused;
    if (reason == StopReason::kInfra) places_[seen.job] = state_.running(seen.job).gangs;
    emit(JobStopping{seen.job, reason, JobId(), seen.blame, progress, seen.exit});
  }
  if (!seen.gone) return;
  // The attempt may be one that was given up: it may have left ghosts.
  DevicesFreed freed{.job = seen.job, .attempt = seen.attempt};
  if (present) freed.progress = progress;
  if (!free_devices(std::move(freed))) refuse(kNothingLeft);
  if (present) finish_if_gone(seen.job);
}

void Core::on(const RanksGone& seen) {
  if (std::string why = contradiction(seen.job, seen.attempt); !why.empty()) return refuse(why);
  const Job& job = state_.job(seen.job);
  const bool stops = seen.attempt == job.attempt && job.phase == JobPhase::kStopping;
  DevicesFreed freed{seen.job, seen.attempt, seen.nodes, seen.epoch, std::nullopt};
  if (stops && seen.progress) freed.progress = believed(job, *seen.progress);
  if (!free_devices(std::move(freed))) refuse(kNothingLeft);
  if (stops) finish_if_gone(seen.job);
}

bool Core::free_devices(DevicesFreed freed) {
  if (!state_.has_ranks(freed)) return false;
  emit(std::move(freed));
  settle_nodes();
  return true;
}

void Core::finish_if_gone(JobId id) {
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

void Core::stop(JobId id, StopReason reason, const Blame& blame, JobId in_favour_of) {
  const Job& job = state_.job(id);
  if (reason == StopReason::kInfra) places_[id] = state_.running(id).gangs;
  emit(JobStopping{id, reason, in_favour_of, blame, {job.done, {}, {}, {}}, std::nullopt});
  const bool hurry = reason == StopReason::kInfra || reason == StopReason::kTimeLimit;
  act(StopRanks{id, job.attempt, hurry ? Duration() : state_.setup().timing.grace, reason});
}

void Core::finish_stop(JobId id) {
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
      return requeue(id, progress, now_ + backoff_of(job, state_.setup().timing));
    case StopReason::kInfra:
    case StopReason::kNeverStarted: {
      if (submission.restart == RestartPolicy::kNever) {
        return end(id, JobPhase::kFailed, progress);
      }
      requeue(id, progress, now_);
      (void)restart_at_its_place(id, Restart::kAtOnce);
      return;
    }
    case StopReason::kPreempted:
    case StopReason::kMoved:
    case StopReason::kPower:
    case StopReason::kDrained:
    case StopReason::kRequeued:
      return requeue(id, progress, now_);
    case StopReason::kCancelled:
      return;
  }
}

void Core::requeue(JobId id, const Progress& progress, Instant not_before) {
  const ArrayId array = state_.job(id).submission->request.array;
  emit(JobRequeued{id, progress, not_before});
  release_if_due(id);
  if (not_before > now_) release_of(array);
}

// Jobs that waited for the ended job are released, or end as well: a chain of any length, so this
// does not recurse.
void Core::end(JobId id, JobPhase phase, const Progress& progress, Blame blame) {
  struct Ended {
    JobId job;
    ArrayId array;
    std::vector<JobId> next;
    std::size_t looked_at = 0;
  };
  std::vector<Ended> open;
  const auto end_one = [&](JobId job, JobPhase as, const Progress& with, Blame why) {
    const ArrayId array = state_.job(job).submission->request.array;
    places_.erase(job);
    emit(JobEnded{job, as, with, std::move(why)});
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

// Precondition: why_stale() found no objection.
void Core::start(const StartJob& start, std::optional<RestartKind> in_place) {
  const Job& job = state_.job(start.job);
  bool compile = false;
  if (job.submission->prepare.program != 0) {
    for (const PlacedGang& gang : start.gangs) {
      const NodeId node = gang.allocation.ranks.front().node;
      const FleetTypeId type = state_.setup().topology->group(node).type;
      compile = compile || !state_.compiled(job.submission->prepare.program, type);
    }
  }
  const std::uint32_t attempt = job.attempt + 1;
  places_.erase(start.job);
  emit(JobStarted{start.job, attempt, start.gangs, start.terms, start.expected,
                  checkpoint_interval(job, start, state_.setup().failures_per_node_second),
                  start.delay, compile, start.price ? start.price->total() : 0});
  act(StartRanks{start.job, attempt, 0, start.delay, compile, in_place});
  if (state_.policy().choice == OptionChoice::kFirst) ask_plans(start);
}

// Requests plans wherever the job was placed: its power follows from its plan.
void Core::ask_plans(const StartJob& start) {
  if (!state_.setup().plans) return;
  const JobRequest& request = state_.job(start.job).submission->request;
  for (const PlacedGang& gang : start.gangs) {
    const std::optional<PlanKey>& key = request.roles[gang.role].options[gang.option].plan;
    if (!key || state_.plans().find(*key) != nullptr) continue;
    if (plans_asked_.insert(*key).second) act(SearchPlan{*key});
  }
}

}  // namespace orrery
