#include "twin/simulation.hpp"

#include <algorithm>
#include <cmath>

#include "base/assert.hpp"

namespace orrery {
namespace {

double percentile(std::span<const double> sorted, double p, Percentile how) {
  if (sorted.empty()) return 0;
  const auto last = static_cast<double>(sorted.size() - 1);
  if (how == Percentile::kIndex) {
    const auto at = static_cast<std::size_t>(p * static_cast<double>(sorted.size()));
    return sorted[std::min(at, sorted.size() - 1)];
  }
  const double at = p * last;
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (at - static_cast<double>(below));
}

double mean(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

/// Whether ranks run on the device or are starting; ranks that are stopping do not count.
bool is_use(DeviceUse use) { return use <= DeviceUse::kExclusive && use != DeviceUse::kStopping; }

/// Adds to the sum that later becomes the mean.
void count_deadline(DeadlineFigures& figures, const JobOutcome& job, Instant now) {
  if (!job.deadline) return;
  ++figures.jobs;
  const std::optional<Duration> late = lateness_of(job, now);
  if (!late) return;
  ++(*late > Duration() ? figures.missed : figures.met);
  figures.mean_late_s += late->count_seconds();
  figures.max_late_s = std::max(figures.max_late_s, late->count_seconds());
}

}  // namespace

std::optional<Duration> lateness_of(const JobOutcome& job, Instant now) {
  const bool finished = job.phase == JobPhase::kFinished;
  if (!job.deadline || (ended(job.phase) && !finished)) return std::nullopt;
  if (!finished && now <= *job.deadline) return std::nullopt;
  return std::max(Duration(), (finished ? job.end : now) - *job.deadline);
}

Simulation::Simulation(const Parts& parts)
    : setup_(parts.setup),
      rules_(parts.world.rules),
      jobs_(parts.jobs),
      hooks_(parts.hooks),
      world_(*parts.setup.topology, parts.world),
      full_scheduler_(*parts.setup.tree),
      commands_(parts.commands),
      measure_(parts.measure),
      now_(parts.setup.begin),
      bills_(parts.hooks.billed) {
  begin(std::make_unique<Core>(parts.setup));
}

void Simulation::begin(std::unique_ptr<Core> core) {
  HostOutlet& outlet = *this;
  host_.emplace(ControlHost::Parts{std::move(core), world_, outlet}, now_);
}

Status Simulation::go_on_from(std::string_view snapshot, Instant now,
                              const JobKnowledge& knowledge) {
  auto core = std::make_unique<Core>(setup_);
  if (Status restored = core->restore(snapshot); !restored) return restored;
  core->resume();
  now_ = std::max(now, core->state().now());
  begin(std::move(core));
  first_job_ = state().jobs();
  for (std::size_t i = 0; i < first_job_; ++i) {
    const JobId id = JobId::at(i);
    if (!state().has(id)) {
      world_.add({});
      continue;
    }
    const KnownJob known = knowledge(state(), id);
    world_.add({.work = known.work});
    if (!ended(state().job(id).phase)) world_.adopt(id, known.left, state(), now_);
  }
  return {};
}

bool Simulation::done() const {
  return next_job_ == jobs_.size() && state().ended_jobs() == state().jobs();
}

bool Simulation::stuck() const {
  constexpr int kPassesInVain = 3;
  return next_job_ == jobs_.size() && next_command_ == commands_.size() && world_.quiet() &&
         state().running().empty() && core().wake() != Instant::max() &&
         !core().waits_by_choice() && idle_ticks_ > kPassesInVain;
}

Instant Simulation::next() const {
  Instant at = next_job_ < jobs_.size() ? jobs_[next_job_].submit : Instant::max();
  at = std::min(at, world_.next_due());
  if (next_command_ < commands_.size()) at = std::min(at, commands_[next_command_].at);
  const bool between_rounds = !rules_.round || !world_.in_round();
  if (between_rounds) at = std::min(at, core().wake());
  return at == Instant::max() ? at : std::max(at, now_);
}

void Simulation::run(Instant until) {
  while (!done()) {
    const Instant at = next();
    if (at == Instant::max() || stuck()) break;
    pass_marks(std::min(at, until));
    if (at > until) {
      now_ = until;  // what runs goes on until then
      break;
    }
    now_ = at;
    step_at(at);
    if (hooks_.tick) hooks_.tick(at, state());
  }
}

// Nothing happens between now and `next`, so the fleet at each mark is as it is now.
void Simulation::pass_marks(Instant next) {
  if (!measure_) return;
  if (before_.empty() && measure_->from <= next) {
    now_ = std::max(now_, measure_->from);
    before_ = hours_until_now();
  }
  if (within_.empty() && measure_->to <= next) {
    now_ = std::max(now_, measure_->to);
    within_ = hours_until_now();
  }
}

std::vector<UseHours> Simulation::hours_until_now() const {
  const Ledger ledger = settled().ledger;
  std::vector<UseHours> hours(ledger.types());
  for (std::uint32_t t = 0; t < ledger.types(); ++t) {
    for (std::size_t u = 0; u < kDeviceUses; ++u) {
      hours[t][u] = device_hours(ledger.sum(FleetTypeId(t), static_cast<DeviceUse>(u), now_));
    }
  }
  return hours;
}

std::vector<UseHours> Simulation::use_hours() const {
  std::vector<UseHours> hours = within_.empty() ? hours_until_now() : within_;
  if (!measure_) return hours;
  const std::vector<UseHours> before = before_.empty() ? hours : before_;
  for (std::size_t t = 0; t < hours.size(); ++t) {
    for (std::size_t u = 0; u < kDeviceUses; ++u) hours[t][u] -= before[t][u];
  }
  return hours;
}

// First the events of the world, then submissions and commands; then control looks at what changed.
// Its actions may have effects at this very instant, which is then not over.
void Simulation::step_at(Instant now) {
  while (world_.next_due() <= now) host_->advance(now);
  while (next_command_ < commands_.size() && commands_[next_command_].at <= now) {
    host_->handle(commands_[next_command_++]);
  }
  while (next_job_ < jobs_.size() && jobs_[next_job_].submit <= now) submit_next();
  const bool between_rounds = !rules_.round || !world_.in_round();
  if (between_rounds && core().wake() <= now) {
    const std::uint64_t before = events_;
    host_->handle({now, Tick{}, {}});
    idle_ticks_ = events_ - before <= 1 ? idle_ticks_ + 1 : 0;
  }
  if (rules_.round && world_.next_due() > now) world_.begin_round(state(), now);
}

void Simulation::submit_next() {
  const PlayedJob& job = jobs_[next_job_++];
  world_.add(job.truth);
  host_->handle({now_, SubmitJob{job.submission}, {}});
}

// --- What the host wants ------------------------------------------------------------------------

void Simulation::note(const Input& input) {
  ++inputs_;
  if (hooks_.input) hooks_.input(input);
}

std::uint64_t Simulation::append(Instant at, std::span<const Event> events) {
  events_ += events.size();
  if (setup_.costs != nullptr) bills_.note(at, events, state());
  watch_.look(core(), events, at);
  if (hooks_.events) hooks_.events(at, events);
  return 0;  // durable from the beginning
}

void Simulation::send(const Order& /*order*/) {
  ORRERY_ASSERT(false, "the twin's world has no agents");
}

void Simulation::run_full_pass(Core& core, Instant now) {
  world_.send_input(full_pass(core.state(), full_scheduler_, now), now);
}

void Simulation::search_plan(const PlanKey& key) {
  world_.send_input(PlanReady{key, nullptr}, now_);
}

Simulation::Settled Simulation::settled() const {
  Settled settled{state().ledger(), {}};
  for (const RunningJob& run : state().running()) {
    const Progress progress = world_.runs().progress_of(state().job(run.id), now_);
    settled.usage[run.id] = state().settle_in(settled.ledger, run.id, progress, now_);
  }
  return settled;
}

std::vector<JobOutcome> Simulation::outcomes() const {
  const Settled settled = this->settled();
  std::vector<JobOutcome> outcomes;
  outcomes.reserve(next_job_);
  for (std::size_t i = 0; i < next_job_; ++i) {
    const Job& job = state().job(JobId::at(first_job_ + i));
    JobOutcome& outcome = outcomes.emplace_back();
    outcome.job = job.id;
    outcome.row = jobs_[i].row;
    outcome.phase = job.phase;
    outcome.submit = job.submitted;
    outcome.measured =
        !measure_ || (job.submitted >= measure_->from && job.submitted <= measure_->to);
    outcome.start = job.first_start;
    outcome.end = ended(job.phase) ? job.end : Instant::max();
    outcome.watched = watch_.of(job.id, now_);
    outcome.deadline = jobs_[i].submission.request.deadline;
    for (const RoleRequest& role : jobs_[i].submission.request.roles) {
      const GangRequest& gang = role.options.front().gang;
      outcome.devices += role.gangs * gang.devices;
      outcome.whole_devices += role.gangs * gang.devices * (gang.share / double{kWholeDevice});
      if (role.steps || jobs_[i].truth.work == Duration::max()) continue;
      outcome.work_hours += jobs_[i].truth.work.count_seconds() / 3600 * role.gangs *
                            role.devices_max *
                            (role.options.front().gang.share / double{kWholeDevice});
    }
    outcome.usage = state().usage_of(job.id, now_);
    const auto found = settled.usage.find(job.id);
    if (found != settled.usage.end()) outcome.usage += found->second;
  }
  return outcomes;
}

void Simulation::sum_jobs(SimulationSummary& s) const {
  JobUsage billed;
  JobUsage all;
  std::vector<double> jct;
  std::vector<double> wait;
  std::vector<double> queueing;
  Instant last = setup_.begin;
  for (const JobOutcome& job : outcomes()) {
    ++s.jobs;
    all += job.usage;
    if (job.end != Instant::max()) last = std::max(last, job.end);
    if (!job.measured) continue;
    ++s.measured;
    s.finished += job.phase == JobPhase::kFinished ? 1 : 0;
    s.failed += job.phase == JobPhase::kFailed ? 1 : 0;
    s.cancelled += job.phase == JobPhase::kCancelled ? 1 : 0;
    s.unfinished += ended(job.phase) ? 0 : 1;
    billed += job.usage;
    count_deadline(s.deadlines, job, now_);
    if (job.end == Instant::max()) continue;
    jct.push_back((job.end - job.submit).count_seconds());
    queueing.push_back(job.watched.queued.count_seconds());
    if (job.start != Instant::max()) wait.push_back((job.start - job.submit).count_seconds());
  }
  if (s.deadlines.missed > 0) {
    s.deadlines.mean_late_s /= static_cast<double>(s.deadlines.missed);
  }
  s.energy_kwh = billed.joules / 3.6e6;
  s.cost_usd = billed.dollars;
  s.co2_kg = billed.co2_grams / 1000;
  s.preemptions = billed.preemptions;
  s.faults = billed.faults;
  s.bills = bills_.figures();
  s.fleet = fleet_bill(state(), all, setup_.begin, now_);
  s.makespan_s = (last - setup_.begin).count_seconds();
  s.avg_jct_s = mean(jct);
  s.avg_wait_s = mean(wait);
  s.avg_queueing_s = mean(queueing);
  std::sort(jct.begin(), jct.end());
  std::sort(queueing.begin(), queueing.end());
  s.p50_jct_s = percentile(jct, 0.5, rules_.percentile);
  s.p99_jct_s = percentile(jct, 0.99, rules_.percentile);
  s.p50_queueing_s = percentile(queueing, 0.5, rules_.percentile);
  s.p90_queueing_s = percentile(queueing, 0.9, rules_.percentile);
  s.p99_queueing_s = percentile(queueing, 0.99, rules_.percentile);
}

SimulationSummary Simulation::summary() const {
  SimulationSummary s;
  sum_jobs(s);
  double used = 0;
  double useful = 0;
  double all = 0;
  for (const UseHours& hours : use_hours()) {
    for (std::size_t u = 0; u < kDeviceUses; ++u) {
      const auto use = static_cast<DeviceUse>(u);
      all += hours[u];
      if (is_use(use)) used += hours[u];
      if (use == DeviceUse::kUseful) useful += hours[u];
    }
  }
  s.utilization = all > 0 ? used / all : 0;
  s.goodput = used > 0 ? useful / used : 0;
  s.corrupt = world_.runs().corrupt_ends();
  s.recoveries = world_.runs().recoveries();
  s.inputs = inputs_;
  s.events = events_;
  s.passes = core().passes();
  return s;
}

}  // namespace orrery
