#include "twin/runs/job_runs.hpp"

#include <algorithm>
#include <utility>

namespace orrery {
namespace {

/// Factor by which work takes longer at a lower clock; `bound` is the part of it that scales with
/// the clock.
double stretch(double clock, double bound) { return bound / clock + (1 - bound); }

/// Seconds of the job's work that pass in a second on its present placement.
double rate_of(const RunningJob& run, PlanBook& plans, const State& state) {
  double slowest = 0;
  for (std::size_t i = 0; i < run.gangs.size(); ++i) {
    const RoleRequest& role = run.request->roles[run.gangs[i].role];
    const PlannedRun planned = plans.of(run, i, state);
    double seconds = planned.ratio / role.options[run.gangs[i].option].speed;
    if (planned.training() != nullptr && role.steps) {
      seconds = planned.plan->step_seconds * planned.ratio;  // work counts one second a step
    }
    const double bound = planned.plan != nullptr ? planned.plan->clock_bound : 1;
    slowest = std::max(slowest, seconds * stretch(run.terms[i].clock, bound));
  }
  return slowest > 0 ? 1 / slowest : 1;
}

}  // namespace

JobRuns::JobRuns(const Topology& topology, const WorldFacts& facts, Agenda& agenda)
    : facts_(&facts),
      agenda_(&agenda),
      traffic_(facts, agenda),
      starts_(topology, facts, traffic_),
      copies_(traffic_, agenda) {}

void JobRuns::add(const TrueJob& job) {
  runs_.push_back({.progress = RunProgress(job.work), .fails = job.fails});
  starts_.add(job);
  copies_.add();
}

void JobRuns::adopt(JobId id, Duration left, const State& state, Instant now) {
  JobRun& run = runs_[id.value()];
  RunProgress& progress = run.progress;
  const Job& job = state.job(id);
  starts_.adopt(id, job.data_at);
  progress.restore(job.done);
  if (!holds_devices(job.phase)) return;
  const RunningJob& placed = state.running(id);
  run.attempt = job.attempt;
  run.epoch = job.epoch;
  run.devices = placed.devices();
  progress.begin(pace_of(placed));
  if (job.phase == JobPhase::kRunning && job.up) {
    progress.come_up(now);
    starts_.note_nodes(placed, state);
    join(run, id, state, now);
    share(state, now);
  }
  set_rate(run, id, state);
  progress.adopt(left, placed.at_risk(now));
  const auto await = [&](WorldEventKind kind, Instant at, EventRank rank) {
    agenda_->push(at, rank, event_of(kind, id));
  };
  if (job.phase == JobPhase::kStopping) {
    return await(WorldEventKind::kGone, now, EventRank::kEnds);
  }
  if (progress.up()) plan_end(run, id, now);
  if (run.epoch > 0) await(WorldEventKind::kShed, now, EventRank::kEnds);
  if (!progress.up()) {
    await(WorldEventKind::kUp, now + facts_->timing.launch, EventRank::kThen);
  }
}

WorldEvent JobRuns::event_of(WorldEventKind kind, JobId id) const {
  const JobRun& run = runs_[id.value()];
  return {.kind = kind, .job = id, .serial = run.serial, .attempt = run.attempt};
}

CheckpointPace JobRuns::pace_of(const RunningJob& placed) const {
  if (!facts_->rules.costs) return {};
  return {placed.checkpoint, placed.request->checkpoint_cost};
}

void JobRuns::start(const StartRanks& action, const State& state, Instant now) {
  JobRun& run = runs_[action.job.value()];
  RunProgress& progress = run.progress;
  const RunningJob& placed = state.running(action.job);
  progress.settle(now);
  // A job that continues in another epoch has its state in memory, unless that is known to be
  // wrong.
  const bool reads = action.epoch == 0 ? action.attempt > 1 : progress.known_wrong(now);
  const StateToRead read = reads ? StateToRead::kNewestCopy : StateToRead::kNone;
  if (action.epoch > 0) report_epoch(run, placed, now);
  run.reported.reset();
  leave(run, action.job, now);
  ++run.serial;
  run.attempt = action.attempt;
  run.epoch = action.epoch;
  run.devices = placed.devices();
  progress.begin(pace_of(placed));
  if (action.epoch == 0) progress.rewind();
  const Duration delay = starts_.begin(action, read, progress, state);
  if (action.epoch > 0) {
    agenda_->push(now + delay, EventRank::kEnds, event_of(WorldEventKind::kShed, action.job));
  }
  if (!starts_.awaits_bytes(action.job)) {
    agenda_->push(now + delay, EventRank::kThen, event_of(WorldEventKind::kUp, action.job));
  }
  share(state, now);
}

void JobRuns::report_epoch(JobRun& run, const RunningJob& placed, Instant now) {
  std::optional<Progress> progress = run.progress.report_epoch(now);
  if (!progress) return;
  const double devices = static_cast<double>(run.devices) / placed.devices();
  for (Duration* time : {&progress->lost, &progress->saving, &progress->undetected}) {
    *time = scaled(*time, devices);
  }
  agenda_->push_input(now, EventRank::kEnds, WorkReported{placed.id, run.attempt, *progress});
}

void JobRuns::stop(const StopRanks& action, const State& state, Instant now) {
  JobRun& run = runs_[action.job.value()];
  if (action.attempt != run.attempt) return;
  RunProgress& progress = run.progress;
  progress.settle(now);
  ++run.serial;
  Duration wait;
  if (!facts_->rules.costs) {
    progress.save_all();
  } else if (progress.computes() && progress.stores()) {
    const RunningJob& placed = state.running(action.job);
    if (copies_.begin_last(placed, progress, state, now)) wait = action.grace;
  } else if (progress.computes() && progress.pace().writes()) {
    const Duration cost = state.running(action.job).request->checkpoint_cost;
    if (cost <= action.grace) {
      wait = cost;
      progress.save_all();
    }
  }
  progress.take_down();
  if (wait == Duration()) leave(run, action.job, now);
  agenda_->push(now + wait, EventRank::kEnds, event_of(WorldEventKind::kGone, action.job));
  share(state, now);
}

void JobRuns::change_clock(const ApplyClock& action, const State& state, Instant now) {
  JobRun& run = runs_[action.job.value()];
  if (!run.progress.up() || action.attempt != run.attempt) return;
  run.progress.settle(now);
  set_rate(run, action.job, state);
  plan_end(run, action.job, now);
}

void JobRuns::set_rate(JobRun& run, JobId id, const State& state) {
  double rate = rate_of(state.running(id), traffic_.plans(), state) / run.slowdown;
  if (const Contention* shared = traffic_.contention()) rate /= shared->slowdown(id);
  run.progress.set_rate(rate);
}

void JobRuns::plan_end(JobRun& run, JobId id, Instant now) {
  ++run.serial;
  const std::optional<Duration> left = run.progress.until_end();
  if (!left) return;  // a service
  agenda_->push(now + *left, EventRank::kEnds, event_of(WorldEventKind::kEnd, id));
}

void JobRuns::join(JobRun& run, JobId id, const State& state, Instant now) {
  const RunningJob& placed = state.running(id);
  Contention* shared = traffic_.contention_of(placed, state);
  if (shared == nullptr) return;
  shared->run(placed, state);
  const CheckpointPace& pace = run.progress.pace();
  if (!pace.writes() || !shared->keeps_copies(placed, state)) return;
  run.progress.set_copies(CopyMode::kStored);
  copies_.plan_first(id, run.attempt, pace, now);
}

void JobRuns::leave(JobRun& run, JobId id, Instant now) {
  copies_.drop(id);
  run.progress.set_copies(CopyMode::kPaced);
  traffic_.leave(id, now);
}

InputKind JobRuns::come_up(JobId id, const FaultyStart& faults, const State& state, Instant now) {
  JobRun& run = runs_[id.value()];
  run.progress.come_up(now);
  starts_.note_nodes(state.running(id), state);
  run.slowdown = faults.slowdown;
  if (faults.corrupt) run.progress.corrupt_results(*faults.corrupt);
  join(run, id, state, now);
  set_rate(run, id, state);
  if (!facts_->rules.round) plan_end(run, id, now);
  share(state, now);
  return RanksUp{id, run.attempt, run.epoch, starts_.source(id)};
}

InputKind JobRuns::end(JobId id, const State& state, Instant now) {
  JobRun& run = runs_[id.value()];
  run.progress.settle(now);
  run.progress.take_down();
  ++run.serial;
  leave(run, id, now);
  share(state, now);
  RanksEnded ended{id, run.attempt, run.fails ? ExitKind::kProgram : ExitKind::kDone,
                   {}, {},          !facts_->rules.round};
  if (run.fails) {
    ended.blame = {FaultLayer::kProgram, NodeId(), "exit status 1"};
    ended.progress = run.progress.report(now);
  } else {
    ended.progress = run.progress.finish();
    if (run.progress.corrupt()) ++corrupt_ends_;
  }
  return ended;
}

RanksGone JobRuns::leave_devices(const WorldEvent& event, const State& state, Instant now) {
  JobRun& run = runs_[event.job.value()];
  ++run.serial;
  leave(run, event.job, now);
  share(state, now);
  if (!run.reported) run.reported = run.progress.report(now);
  return RanksGone{event.job, event.attempt, {}, run.reported};
}

void JobRuns::begin_copy(const WorldEvent& event, const State& state, Instant now) {
  JobRun& run = runs_[event.job.value()];
  const bool due = event.attempt == run.attempt && copies_.is_due(event);
  if (!due || !run.progress.computes()) return;
  run.progress.settle(now);
  copies_.begin(state.running(event.job), run.progress, state, now);
  share(state, now);
}

void JobRuns::bytes_arrived(const WorldEvent& event, const State& state, Instant now) {
  if (!traffic_.is_planned(event)) return;
  for (const Moved& moved : traffic_.take_arrived(now)) {
    JobRun& run = runs_[moved.job.value()];
    if (moved.kind != MoveKind::kSave) {
      const std::optional<Duration> rest = starts_.bytes_arrived(moved.job);
      if (!rest) continue;
      agenda_->push(now + *rest, EventRank::kThen, event_of(WorldEventKind::kUp, moved.job));
      continue;
    }
    copies_.complete(moved.job, run.progress, now);
    if (run.progress.up()) {
      copies_.plan_next(moved.job, run.attempt, run.progress.pace(), now);
    } else {  // last copy before a stop
      agenda_->push(now, EventRank::kEnds, event_of(WorldEventKind::kGone, moved.job));
    }
  }
  share(state, now);
}

void JobRuns::links_changed(std::span<const LinkId> links, const State& state, Instant now) {
  traffic_.plans().links_changed();
  Contention* shared = traffic_.contention();
  if (shared == nullptr) return;
  for (const LinkId link : links) shared->link_changed(state.fleet().view(), link);
  for (const RunningJob& placed : state.running()) {
    JobRun& run = runs_[placed.id.value()];
    if (!run.progress.computes() || !shared->reprice(placed, state)) continue;
    run.progress.settle(now);
    set_rate(run, placed.id, state);
    plan_end(run, placed.id, now);
  }
  share(state, now);
}

void JobRuns::halt(JobId id, Instant now) {
  JobRun& run = runs_[id.value()];
  run.progress.settle(now);
  leave(run, id, now);
  run.progress.halt(now);
  ++run.serial;
}

void JobRuns::corrupt(JobId id, Instant known, Instant now) {
  RunProgress& progress = runs_[id.value()].progress;
  progress.settle(now);
  progress.corrupt_results(known);
}

void JobRuns::slow(JobId id, double slowdown, const State& state, Instant now) {
  JobRun& run = runs_[id.value()];
  run.progress.settle(now);
  run.slowdown = slowdown;
  set_rate(run, id, state);
  plan_end(run, id, now);
}

void JobRuns::share(const State& state, Instant now) {
  Contention* shared = traffic_.contention();
  if (shared == nullptr) return;
  for (const JobId id : shared->update(now)) {
    JobRun& run = runs_[id.value()];
    if (!run.progress.computes()) continue;
    run.progress.settle(now);
    set_rate(run, id, state);
    plan_end(run, id, now);
  }
  traffic_.plan_arrival(now);
}

InputKind JobRuns::end_lost(JobId id, Blame blame, Instant now) {
  JobRun& run = runs_[id.value()];
  RanksEnded ended{id, run.attempt, ExitKind::kInfra, std::move(blame), {}, false};
  ended.progress = run.progress.report(now);
  run.reported = ended.progress;
  run.progress.take_down();
  ++run.serial;
  agenda_->push(now, EventRank::kEnds, event_of(WorldEventKind::kGone, id));
  return ended;
}

Progress JobRuns::progress_of(const Job& job, Instant now) const {
  const JobRun& run = runs_[job.id.value()];
  if (run.reported) return *run.reported;
  RunProgress progress = run.progress;
  progress.settle(now);
  if (job.phase != JobPhase::kStopping) progress.save_all();  // nothing is lost yet
  return progress.report(now);
}

}  // namespace orrery
