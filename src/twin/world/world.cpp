#include "twin/world/world.hpp"

#include <algorithm>
#include <cmath>

#include "base/assert.hpp"

namespace orrery {
namespace {

// Among events of one instant, ends precede the events that they make room for.
constexpr std::uint8_t kEndsFirst = 0;
constexpr std::uint8_t kThen = 1;

/// Factor by which work takes longer at a lower clock; `bound` is the part of it that scales with
/// the clock.
double stretch(double clock, double bound) { return bound / clock + (1 - bound); }

Duration scaled(Duration time, double factor) {
  return factor == 1 ? time : Duration::from_seconds(time.count_seconds() * factor);
}

}  // namespace

World::World(const Topology& topology, Facts facts)
    : topology_(&topology), facts_(std::move(facts)), book_(facts_.plans) {
  await_fault();
}

void World::add(const TrueJob& job) {
  Run& run = runs_.emplace_back();
  run.job = job;
  run.left = run.safe_left = job.work;
  run.steps_left = job.steps;
}

void World::adopt(JobId id, Duration left, const State& state, Instant now) {
  Run& run = runs_[id.value()];
  const Job& job = state.job(id);
  run.data_at = job.data_at;
  const bool endless = run.job.work == Duration::max();
  if (!endless) run.left = run.safe_left = scaled(run.job.work, 1 - job.done);
  if (!holds_devices(job.phase)) return;
  const RunningJob& placed = state.running(id);
  run.attempt = job.attempt;
  run.epoch = job.epoch;
  run.devices = placed.devices();
  run.interval = placed.checkpoint;
  run.cost = placed.request->checkpoint_cost;
  const Duration unsaved = placed.at_risk(now);
  run.since = now;
  run.saved = now - unsaved;
  run.up = job.phase == JobPhase::kRunning && job.up;
  if (run.up) {
    note_seats(run, placed, state);
    join(run, id, state);
    share(state, now);
  }
  set_rate(run, state, id);
  if (!endless) {
    run.left = scaled(left, run.rate);
    run.safe_left = run.left + scaled(unsaved, run.rate);
    run.job.work = std::max(run.job.work, run.safe_left);
  }
  const auto say = [&](Kind kind, Instant at, std::uint8_t order) {
    queue_.push(at, order, {.kind = kind, .job = id, .serial = run.serial, .attempt = run.attempt});
  };
  if (job.phase == JobPhase::kStopping) return say(Kind::kGone, now, kEndsFirst);
  if (run.up) schedule_end(run, id, now);
  if (run.epoch > 0) say(Kind::kShed, now, kEndsFirst);
  if (!run.up) say(Kind::kUp, now + facts_.timing.launch, kThen);
}

void World::carry_out(const Action& action, const State& state, Instant now) {
  if (const auto* begin = std::get_if<StartRanks>(&action)) {
    start(*begin, state, now);
  } else if (const auto* end = std::get_if<StopRanks>(&action)) {
    stop(*end, state, now);
  } else if (const auto* clock = std::get_if<ApplyClock>(&action)) {
    Run& run = runs_[clock->job.value()];
    if (!run.up || clock->attempt != run.attempt) return;
    settle(run, now);
    set_rate(run, state, clock->job);
    schedule_end(run, clock->job, now);
  } else if (const auto* repair = std::get_if<RepairNode>(&action)) {
    const auto needs = repair_.find(repair->node);
    const Duration time = needs == repair_.end() ? Duration() : needs->second;
    if (time == Duration::max()) {  // no spare parts
      repair_.erase(needs);
      return;
    }
    // Only the node's network is faulty, and its repair does not depend on this node.
    if (needs == repair_.end() && cut_off_until(repair->node)) return;
    queue_.push(now + time, kThen, {.kind = Kind::kRepaired, .node = repair->node});
  }
}

void World::start(const StartRanks& action, const State& state, Instant now) {
  Run& run = runs_[action.job.value()];
  const RunningJob& placed = state.running(action.job);
  if (run.up && !run.halted) settle(run, now);
  // A job that continues in another epoch has its state in memory, unless that is known to be
  // wrong.
  const bool reads = action.epoch == 0 ? action.attempt > 1 : known_wrong(run, now);
  if (action.epoch > 0) report_work(run, placed, now);
  run.up = run.halted = false;
  run.told.reset();
  leave(action.job, now);
  ++run.serial;
  run.attempt = action.attempt;
  run.epoch = action.epoch;
  run.devices = placed.devices();
  run.interval = placed.checkpoint;
  run.cost = placed.request->checkpoint_cost;
  if (action.epoch == 0) run.left = run.safe_left;
  if (action.epoch == 0 && !action.in_place) run.seats.clear();
  run.source = StateSource::kUnsaid;
  run.loading.reset();
  run.awaited = 0;
  Duration delay = action.delay;
  if (facts_.rules.costs) {
    delay += facts_.timing.launch;
    const Job& job = state.job(action.job);
    if (action.compile) delay += job.submission->prepare.compile;
    if (reads) delay += begin_recovery(run, action, state);
  }
  if (action.epoch > 0) {
    queue_.push(
        now + delay, kEndsFirst,
        {.kind = Kind::kShed, .job = action.job, .serial = run.serial, .attempt = run.attempt});
  }
  if (action.epoch == 0) delay += stage_data(run, placed, state);
  if (run.awaited > 0) {
    run.loading = delay;
  } else {
    queue_.push(
        now + delay, kThen,
        {.kind = Kind::kUp, .job = action.job, .serial = run.serial, .attempt = run.attempt});
  }
  share(state, now);
}

Duration World::worked(const Run& run, Instant now) const {
  if (!run.up || run.halted || now <= run.since) return {};
  return std::min(scaled(now - run.since, run.rate), run.left);
}

// Work advances evenly between checkpoints; the time of checkpoints is spread over it.
void World::settle(Run& run, Instant now) const {
  if (!run.up || run.halted || now <= run.since) return;
  if (facts_.rules.costs && run.interval != Duration::max() && !run.writes) {
    const std::int64_t every = (run.interval + run.cost).count_ns();
    const std::int64_t copies = every > 0 ? (now - run.saved).count_ns() / every : 0;
    if (copies > 0) {
      run.saved = run.saved + Duration::nanoseconds(every * copies);
      run.saving += run.cost * copies;
      if (run.saved > run.since) {
        run.safe_left = run.left - std::min(scaled(run.saved - run.since, run.rate), run.left);
      } else {
        run.safe_left = run.left;
      }
    }
  }
  run.left = run.left - worked(run, now);
  run.since = now;
}

// Unsaved work is lost; time that the job was halted undetected counts as no work.
Progress World::take_progress(Run& run, Instant now) {
  if (known_wrong(run, now)) {
    run.safe_left = *run.corrupt_left;
    run.memory_wrong = true;
  }
  // A restart from a copy made before the corruption is correct, whether the corruption is known or
  // not.
  if (run.corrupt_left && run.safe_left >= *run.corrupt_left) run.corrupt_left.reset();
  Progress progress;
  progress.done = done_of(run);
  const double lost = (run.safe_left - run.left).count_seconds();
  if (lost > 0) progress.lost = Duration::from_seconds(lost / (run.rate > 0 ? run.rate : 1));
  progress.saving = std::exchange(run.saving, Duration());
  if (run.halted) progress.undetected = now - run.halted_at;
  run.left = run.safe_left;
  run.halted = false;
  return progress;
}

// A job that continues keeps its work in memory, unless that is known to be wrong.
void World::report_work(Run& run, const RunningJob& placed, Instant now) {
  const bool wrong = known_wrong(run, now);
  if (!run.halted && !wrong) return;
  const Duration saved = run.safe_left;
  if (!wrong) run.safe_left = run.left;
  Progress progress = take_progress(run, now);
  if (!wrong) run.safe_left = saved;
  const double devices = static_cast<double>(run.devices) / placed.devices();
  for (Duration* time : {&progress.lost, &progress.saving, &progress.undetected}) {
    *time = scaled(*time, devices);
  }
  send_input(WorkReported{placed.id, run.attempt, progress}, now);
}

Progress World::progress_of(const Job& job, Instant now) const {
  Run run = runs_[job.id.value()];
  if (run.told) return *run.told;
  settle(run, now);
  if (job.phase != JobPhase::kStopping) run.safe_left = run.left;  // nothing is lost yet
  return take_progress(run, now);
}

double World::rate_of(const State& state, const RunningJob& run) {
  double slowest = 0;
  for (std::size_t i = 0; i < run.gangs.size(); ++i) {
    const RoleRequest& role = run.request->roles[run.gangs[i].role];
    const PlannedRun planned = book_.of(run, i, state);
    double seconds = planned.ratio / role.options[run.gangs[i].option].speed;
    if (planned.training() != nullptr && role.steps) {
      seconds = planned.plan->step_seconds * planned.ratio;  // work counts one second a step
    }
    const double bound = planned.plan != nullptr ? planned.plan->clock_bound : 1;
    slowest = std::max(slowest, seconds * stretch(run.terms[i].clock, bound));
  }
  return slowest > 0 ? 1 / slowest : 1;
}

void World::set_rate(Run& run, const State& state, JobId job) {
  run.rate = rate_of(state, state.running(job)) / run.slowdown;
  if (contention_) run.rate /= contention_->slowdown(job);
  const bool saves = facts_.rules.costs && run.interval != Duration::max() &&
                     run.interval > Duration() && run.cost > Duration();
  if (!saves) return;
  const double interval = run.interval.count_seconds();
  run.rate *= interval / (interval + run.cost.count_seconds());
}

void World::schedule_end(Run& run, JobId job, Instant now) {
  ++run.serial;
  if (run.job.work == Duration::max()) return;  // a service
  queue_.push(now + scaled(run.left, 1 / run.rate), kEndsFirst,
              {.kind = Kind::kEnd, .job = job, .serial = run.serial, .attempt = run.attempt});
}

// A requested stop first saves the work done, if the grace period allows.
void World::stop(const StopRanks& action, const State& state, Instant now) {
  Run& run = runs_[action.job.value()];
  if (action.attempt != run.attempt) return;
  settle(run, now);
  ++run.serial;
  Duration wait;
  if (!facts_.rules.costs) {
    run.safe_left = run.left;
  } else if (run.up && !run.halted && run.writes) {
    if (last_copy(run, action.job, state, now)) wait = action.grace;
  } else if (run.up && !run.halted && run.interval != Duration::max()) {
    const Duration cost = state.running(action.job).request->checkpoint_cost;
    if (cost <= action.grace) {
      wait = cost;
      run.safe_left = run.left;
    }
  }
  run.up = false;
  if (wait == Duration()) leave(action.job, now);
  queue_.push(
      now + wait, kEndsFirst,
      {.kind = Kind::kGone, .job = action.job, .serial = run.serial, .attempt = action.attempt});
  share(state, now);
}

double World::done_of(const Run& run) {
  const double work = run.job.work.count_seconds();
  return work > 0 ? 1 - run.safe_left.count_seconds() / work : 1;
}

std::optional<Input> World::step(const State& state) {
  const Instant now = queue_.next();
  const Event event = queue_.pop();
  switch (event.kind) {
    case Kind::kInput:
      return Input{now, std::move(later_[event.index]), {}};
    case Kind::kRoundEnd:
      in_round_ = false;
      return std::nullopt;
    case Kind::kFault:
      strike(event.index, state, now);
      await_fault();
      return std::nullopt;
    case Kind::kKnown:
      return known(event, state, now);
    case Kind::kCut:
      return cut(event, now);
    case Kind::kParted:
      return parted(event, state, now);
    case Kind::kOver:
      return over(event, state, now);
    case Kind::kSuspect:
    case Kind::kLost:
    case Kind::kLeased:
    case Kind::kFenced:
    case Kind::kBack:
      return step_silence(event, state, now);
    case Kind::kRepaired:
    case Kind::kReached:
      return repaired(event, now);
    case Kind::kMoved:
      if (event.serial == moves_planned_) bytes_arrived(state, now);
      return std::nullopt;
    case Kind::kLinks:
      feel_links(state, now);
      return std::nullopt;
    case Kind::kCopy:
    case Kind::kShed:
    case Kind::kUp:
    case Kind::kEnd:
    case Kind::kGone:
      break;
  }
  return step_run(event, state, now);
}

std::optional<Input> World::step_run(const Event& event, const State& state, Instant now) {
  Run& run = runs_[event.job.value()];
  if (event.kind == Kind::kCopy) {
    const bool holds = event.attempt == run.attempt && event.serial == run.copies && run.up;
    if (holds && !run.halted) begin_copy(run, event.job, state, now);
    return std::nullopt;
  }
  if (event.serial != run.serial) return std::nullopt;
  if (event.kind == Kind::kShed) {
    std::vector<NodeId> nodes;
    for (const Ghost& ghost : state.ghosts()) {
      const bool heard = !silent_.contains(ghost.at.node);
      if (ghost.job == event.job && ghost.epoch < run.epoch && heard) {
        nodes.push_back(ghost.at.node);
      }
    }
    if (nodes.empty()) return std::nullopt;
    RanksGone gone{event.job, event.attempt, std::move(nodes), std::nullopt, run.epoch - 1};
    return Input{now, std::move(gone), {}};
  }
  if (event.kind == Kind::kUp) return come_up(event, state, now);
  if (event.kind == Kind::kGone) {
    ++run.serial;
    leave(event.job, now);
    share(state, now);
    return reported_gone(event, state, now);
  }
  return end(event, state, now);
}

std::optional<Input> World::come_up(const Event& event, const State& state, Instant now) {
  Run& run = runs_[event.job.value()];
  const RunningJob& placed = state.running(event.job);
  if (silent_of(placed) > 0) return std::nullopt;
  if (const Instant until = stands_until(placed, now); until > now) {
    queue_.push(until, kThen, event);
    return std::nullopt;
  }
  run.up = true;
  run.since = run.saved = now;
  note_seats(run, placed, state);
  take_on(run, placed);
  join(run, event.job, state);
  set_rate(run, state, event.job);
  if (!facts_.rules.round) schedule_end(run, event.job, now);
  share(state, now);
  return Input{now, RanksUp{event.job, run.attempt, run.epoch, run.source}, {}};
}

std::optional<Input> World::end(const Event& event, const State& state, Instant now) {
  Run& run = runs_[event.job.value()];
  settle(run, now);
  run.up = false;
  ++run.serial;
  leave(event.job, now);
  share(state, now);
  const bool fails = run.job.fails;
  RanksEnded ended{event.job, run.attempt, fails ? ExitKind::kProgram : ExitKind::kDone,
                   {},        {},          !facts_.rules.round};
  if (fails) {
    ended.blame = {FaultLayer::kProgram, NodeId(), "exit status 1"};
    ended.progress = take_progress(run, now);
  } else {
    ended.progress = {1, {}, std::exchange(run.saving, Duration()), {}};
    run.left = run.safe_left = Duration();
    if (run.corrupt_left) ++corrupt_;
  }
  return Input{now, std::move(ended), {}};
}

void World::deliver(const Report& /*report*/, Instant /*now*/) {
  ORRERY_ASSERT(false, "the twin's world has no agents");
}

void World::advance(const State& state, Instant now) {
  ORRERY_ASSERT(now == queue_.next(), "events of the world happen at their time");
  if (std::optional<Input> seen = step(state)) effects_.emplace_back(std::move(seen->what));
}

std::vector<ExecutorEffect> World::take() { return std::exchange(effects_, {}); }

void World::send_input(InputKind what, Instant now) {
  Duration after;
  if (std::holds_alternative<Proposal>(what)) after = facts_.timing.scheduler_latency;
  if (auto* plan = std::get_if<PlanReady>(&what)) {
    plan->entry = facts_.plans(plan->key);
    after = facts_.timing.plan_search;
  }
  const std::uint8_t rank = std::holds_alternative<WorkReported>(what) ? kEndsFirst : kThen;
  later_.push_back(std::move(what));
  queue_.push(now + after, rank,
              {.kind = Kind::kInput, .index = static_cast<std::uint32_t>(later_.size() - 1)});
}

// Each job runs as many whole steps as fit into the round, or the steps it has left. The next round
// begins when the longest of these is over; the devices of a job that ended earlier are freed only
// then.
void World::begin_round(const State& state, Instant now) {
  if (in_round_) return;
  Duration longest;
  for (const RunningJob& placed : state.running()) {
    Run& run = runs_[placed.id.value()];
    if (!run.up) continue;
    in_round_ = true;
    const PlacedGang& gang = placed.gangs.front();
    const double speed =
        run.job.steps_per_second * placed.request->roles[gang.role].options[gang.option].speed;
    const auto whole = static_cast<std::uint64_t>(facts_.rules.round->count_seconds() * speed);
    const std::uint64_t steps = std::min(std::max<std::uint64_t>(whole, 1), run.steps_left);
    const Duration time = Duration::from_seconds(static_cast<double>(steps) / speed);
    longest = std::max(longest, time);
    run.steps_left -= steps;
    if (run.steps_left > 0) continue;
    run.left = Duration();
    queue_.push(
        now + time, kEndsFirst,
        {.kind = Kind::kEnd, .job = placed.id, .serial = run.serial, .attempt = run.attempt});
  }
  if (!in_round_) return;
  for (const RunningJob& placed : state.running()) {
    const Run& run = runs_[placed.id.value()];
    if (run.up && run.steps_left == 0) {
      queue_.push(now + longest, kThen,
                  {.kind = Kind::kGone,
                   .job = placed.id,
                   .serial = run.serial + 1,
                   .attempt = run.attempt});
    }
  }
  queue_.push(now + longest, kThen + 1, {.kind = Kind::kRoundEnd});
}

}  // namespace orrery
