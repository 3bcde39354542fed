#include "twin/world.hpp"

#include <algorithm>
#include <cmath>

#include "base/assert.hpp"

namespace orrery {
namespace {

// Among events of one instant ends come before what they make room for.
constexpr std::uint8_t kEndsFirst = 0;
constexpr std::uint8_t kThen = 1;

/// How much longer work takes at a lower clock, of which `bound` stretches with it.
double stretch(double clock, double bound) { return bound / clock + (1 - bound); }

/// Seconds of the job's work that pass in a second where it is placed.
double rate_of(const State& state, const RunningJob& run) {
  double slowest = 0;
  for (std::size_t i = 0; i < run.gangs.size(); ++i) {
    const RoleRequest& role = run.request->roles[run.gangs[i].role];
    const GangOption& option = role.options[run.gangs[i].option];
    const GangTerms& terms = run.terms[i];
    const PlanEntry* entry = option.plan ? state.plans().find(*option.plan) : nullptr;
    const PlannedWork* plan = entry != nullptr && *entry ? &entry->value()[terms.plan] : nullptr;
    double seconds = terms.ratio / option.speed;
    if (plan != nullptr && plan->training() != nullptr && role.steps) {
      seconds = plan->step_seconds * terms.ratio;  // work counts one second a step
    }
    seconds *= stretch(terms.clock, plan != nullptr ? plan->clock_bound : 1);
    slowest = std::max(slowest, seconds);
  }
  return slowest > 0 ? 1 / slowest : 1;
}

Duration scaled(Duration time, double factor) {
  return factor == 1 ? time : Duration::from_seconds(time.count_seconds() * factor);
}

}  // namespace

void World::add(const TrueJob& job) {
  Run& run = runs_.emplace_back();
  run.job = job;
  run.left = run.safe_left = job.work;
  run.steps_left = job.steps;
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
  } else if (const auto* plan = std::get_if<SearchPlan>(&action)) {
    plans_.push_back(plan->key);
    queue_.push(now + facts_.timing.plan_search, kThen,
                {.kind = Kind::kPlan, .index = static_cast<std::uint32_t>(plans_.size() - 1)});
  }
}

void World::start(const StartRanks& action, const State& state, Instant now) {
  Run& run = runs_[action.job.value()];
  const RunningJob& placed = state.running(action.job);
  if (run.up) settle(run, now);
  run.up = false;
  ++run.serial;
  run.attempt = action.attempt;
  run.epoch = action.epoch;
  run.interval = placed.checkpoint;
  run.cost = placed.request->checkpoint_cost;
  Duration delay = action.delay;
  if (facts_.rules.costs) {
    delay += facts_.timing.launch;
    const Job& job = state.job(action.job);
    if (action.compile) delay += job.submission->prepare.compile;
    if (run.left != run.job.work) delay += placed.request->restart;
  }
  queue_.push(now + delay, kThen,
              {.kind = Kind::kUp, .job = action.job, .serial = run.serial, .attempt = run.attempt});
}

Duration World::worked(const Run& run, Instant now) const {
  if (!run.up || now <= run.since) return {};
  return std::min(scaled(now - run.since, run.rate), run.left);
}

void World::settle(Run& run, Instant now) {
  run.left = run.left - worked(run, now);
  run.since = std::max(run.since, now);
}

// Checkpoints make work take longer; a service has no end.
void World::set_rate(Run& run, const State& state, JobId job) {
  run.rate = rate_of(state, state.running(job));
  const bool saves = facts_.rules.costs && run.interval != Duration::max() &&
                     run.interval > Duration() && run.cost > Duration();
  if (!saves) return;
  const double interval = run.interval.count_seconds();
  run.rate *= interval / (interval + run.cost.count_seconds());
}

void World::schedule_end(Run& run, JobId job, Instant now) {
  ++run.serial;
  Duration left = run.left;
  if (run.job.fails_after) {
    left = std::max(left - (run.job.work - *run.job.fails_after), Duration());
  }
  if (run.job.work == Duration::max()) return;
  queue_.push(now + scaled(left, 1 / run.rate), kEndsFirst,
              {.kind = Kind::kEnd, .job = job, .serial = run.serial, .attempt = run.attempt});
}

// A stop that was asked for saves what is done first, as far as the grace allows.
void World::stop(const StopRanks& action, const State& state, Instant now) {
  Run& run = runs_[action.job.value()];
  if (action.attempt != run.attempt) return;
  settle(run, now);
  ++run.serial;
  Duration wait;
  if (facts_.rules.costs && run.up) {
    const Duration cost = state.running(action.job).request->checkpoint_cost;
    const bool saves = run.interval != Duration::max() && cost <= action.grace;
    if (saves) {
      wait = cost;
      run.safe_left = run.left;
    }
  } else if (!facts_.rules.costs) {
    run.safe_left = run.left;
  }
  run.up = false;
  queue_.push(
      now + wait, kEndsFirst,
      {.kind = Kind::kGone, .job = action.job, .serial = run.serial, .attempt = action.attempt});
}

double World::done_of(const Run& run) {
  const double work = run.job.work.count_seconds();
  return work > 0 ? 1 - run.safe_left.count_seconds() / work : 1;
}

std::optional<Input> World::step(const State& state) {
  const Instant now = queue_.next();
  const Event event = queue_.pop();
  switch (event.kind) {
    case Kind::kPlan:
      return Input{now, PlanReady{plans_[event.index], facts_.plans(plans_[event.index])}, {}};
    case Kind::kProposal:
      return Input{now, std::move(proposals_[event.index]), {}};
    case Kind::kRoundEnd:
      in_round_ = false;
      return std::nullopt;
    case Kind::kUp:
    case Kind::kEnd:
    case Kind::kGone:
      break;
  }
  Run& run = runs_[event.job.value()];
  if (event.serial != run.serial) return std::nullopt;
  if (event.kind == Kind::kUp) {
    run.up = true;
    run.since = now;
    set_rate(run, state, event.job);
    if (!facts_.rules.round) schedule_end(run, event.job, now);
    return Input{now, RanksUp{event.job, run.attempt, run.epoch}, {}};
  }
  if (event.kind == Kind::kGone) {
    return Input{now, RanksGone{event.job, event.attempt, {}, Progress{done_of(run)}}, {}};
  }
  settle(run, now);
  run.up = false;
  ++run.serial;
  const bool fails = run.job.fails_after && run.left > Duration();
  RanksEnded ended{event.job, run.attempt, fails ? ExitKind::kProgram : ExitKind::kDone,
                   {},        {},          !facts_.rules.round};
  if (fails) ended.blame = {FaultLayer::kProgram, NodeId(), "exit status 1"};
  ended.progress.done = fails ? done_of(run) : 1;
  return Input{now, std::move(ended), {}};
}

void World::propose(Proposal proposal, Instant now) {
  proposals_.push_back(std::move(proposal));
  queue_.push(
      now + facts_.timing.scheduler_latency, kThen,
      {.kind = Kind::kProposal, .index = static_cast<std::uint32_t>(proposals_.size() - 1)});
}

// Each runs as many whole steps as fit into the round, or what it has left; the next round begins
// when the longest of these is over, and devices of a job that ended before come free only then.
void World::begin_round(const State& state, Instant now) {
  if (in_round_) return;
  Duration longest;
  for (const RunningJob& placed : state.running()) {
    Run& run = runs_[placed.id.value()];
    if (!run.up) continue;
    in_round_ = true;
    const double speed = run.job.steps_per_second;
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
