// When passes run, and how their decisions are carried out.
#include <fmt/format.h>

#include <algorithm>

#include "base/assert.hpp"
#include "control/core/core.hpp"
#include "control/core/held_situation.hpp"
#include "scheduler/power/gang_power.hpp"
#include "scheduler/request/job_array.hpp"
#include "scheduler/tenants/queue_order.hpp"

namespace orrery {
namespace {

constexpr const char* kGuaranteed = "its tenant is guaranteed by now what it would lose";

Duration span_of(Seconds seconds) { return Duration::from_seconds(seconds.value()); }

DeviceUse cause_of(const Refusal& refusal, std::uint32_t free, std::uint32_t wanted) {
  switch (refusal.kind) {
    case RejectionKind::kBusy:
      return free >= wanted ? DeviceUse::kFragmented : DeviceUse::kTooFew;
    case RejectionKind::kQuota:
      return DeviceUse::kQuota;
    case RejectionKind::kPower:
      return DeviceUse::kPower;
    case RejectionKind::kBudget:
    case RejectionKind::kLater:
    case RejectionKind::kNever:
    case RejectionKind::kMemory:
    case RejectionKind::kStack:
      return DeviceUse::kOrder;
  }
  return DeviceUse::kOrder;
}

/// Whether an allocation can be taken from the fleet in its present state.
bool there(const FleetView& view, const Allocation& allocation, double oversubscription) {
  const auto free = [&view](const NodeDevices& at) {
    return (view.node(at.node).free_mask & at.devices) == at.devices;
  };
  const auto shared = [&](const NodeDevices& at) {
    const auto used = view.shared(detail::shared_device(view.topology(), at));
    const double most = std::min<double>(kShareMax, kWholeDevice * oversubscription);
    return (used != 0 || free(at)) && used + allocation.share <= most;
  };
  const auto& ranks = allocation.ranks;
  const bool have = allocation.share < kWholeDevice
                        ? std::all_of(ranks.begin(), ranks.end(), shared)
                        : std::all_of(ranks.begin(), ranks.end(), free);
  return have && std::all_of(allocation.idle.begin(), allocation.idle.end(), free);
}

bool same(const Reservation& a, const Reservation& b) {
  if (a.job != b.job || a.start != b.start || a.gangs.size() != b.gangs.size()) return false;
  for (std::size_t i = 0; i < a.gangs.size(); ++i) {
    if (!(a.gangs[i].allocation == b.gangs[i].allocation)) return false;
  }
  return true;
}

/// Whether a running job has several sizes or types to choose from.
bool may_change(const RunningJob& job) {
  const auto several = [](const RoleRequest& role) { return role.options.size() > 1; };
  return std::any_of(job.request->roles.begin(), job.request->roles.end(), several);
}

/// Whether a round is due although no job waits: jobs take turns on the faster type, and a job that
/// was too young to change at the last round may grow at the next.
bool take_turns(const State& state) {
  const std::span<const RunningJob> running = state.running();
  if (state.policy().preemption != PreemptionRule::kRounds || running.empty()) return false;
  return state.setup().topology->type_count() > 1 ||
         std::any_of(running.begin(), running.end(), may_change);
}

/// Whether the job of a slot waits, or stops only to wait again.
bool will_wait(const Job& job) {
  if (job.phase == JobPhase::kQueued) return true;
  const bool over = job.stop == StopReason::kFinished || job.stop == StopReason::kTimeLimit ||
                    job.stop == StopReason::kCancelled || job.stop == StopReason::kRefused;
  return job.phase == JobPhase::kStopping && !job.cancel && !over;
}

}  // namespace

Proposal full_pass(const State& state, Scheduler& scheduler, Instant now) {
  return {state.version(), scheduler.decide(state.situation(now), state.policy(), PassKind::kFull)};
}

Proposal full_pass(const HeldSituation& held, Scheduler& scheduler) {
  return {held.version(), scheduler.decide(held.situation(), held.policy(), PassKind::kFull)};
}

std::unique_ptr<const HeldSituation> Core::hold(Instant now) { return state_.hold(now); }

// If no job waits there is nothing to decide, unless a power limit changed for running jobs. A
// changed link is a reason to move running jobs, which only full passes do.
bool Core::changed() const {
  const Changes& now = state_.changes();
  const Changes& seen = seen_.changes;
  if (now.limits != seen.limits) return true;
  const bool links = now.links != seen.links;
  if (state_.waiting().empty()) return !last_.waiting.empty() || (links && every_pass_full());
  if (now_ >= wake_asked_) return true;
  return links || queued_ != seen_.queued || now.freed != seen.freed || now.plans != seen.plans;
}

bool Core::every_pass_full() const {
  return wants_full(state_.policy()) && state_.policy().full_interval <= Seconds();
}

// The interval is waived while no job runs: no job could free anything.
Instant Core::next_pass() const {
  if (!last_pass_ || state_.running().empty()) return now_;
  return *last_pass_ + span_of(state_.policy().pass_interval);
}

// Running jobs may grow, move or speed up when something became free, although no job waits.
Instant Core::next_full() const {
  const Policy& policy = state_.policy();
  const Changes& now = state_.changes();
  const bool runs_on = !state_.running().empty() &&
                       (now.freed != seen_full_.freed || now.limits != seen_full_.limits ||
                        now.links != seen_full_.links);
  if (!wants_full(policy) || policy.full_interval <= Seconds() || full_asked_)
    return Instant::max();
  if (state_.waiting().empty() && !runs_on && !take_turns(state_)) return Instant::max();
  return last_full_ ? std::max(now_, *last_full_ + span_of(policy.full_interval)) : now_;
}

Instant Core::wake() const {
  Instant next = timers_.empty() ? Instant::max() : timers_.begin()->at;
  if (!state_.waiting().empty() && wake_asked_ > now_) next = std::min(next, wake_asked_);
  if (changed()) next = std::min(next, std::max(now_, next_pass()));
  return std::min(next, next_full());
}

void Core::on(const Tick&) {
  fire_timers();
  if (changed() && now_ >= next_pass()) run_pass();
  if (now_ < next_full()) return;
  last_full_ = now_;
  seen_full_ = state_.changes();
  full_asked_ = true;
  emit_unfelt(PassDone{PassKind::kFull});
  act(RunFullPass{state_.version()});
}

void Core::fire_timers() {
  while (!timers_.empty() && timers_.begin()->at <= now_) {
    const Timer timer = *timers_.begin();
    timers_.erase(timers_.begin());
    if (!timer.job.valid()) {
      keep_maintenance();
      continue;
    }
    if (!state_.has(timer.job)) continue;
    const Job& job = state_.job(timer.job);
    if (job.phase == JobPhase::kHeld) {
      release_if_due(timer.job);
    } else if (job.phase == JobPhase::kRunning) {
      const std::optional<Duration> limit = state_.running(timer.job).request->time_limit;
      if (limit && job.since + *limit <= now_) stop(timer.job, StopReason::kTimeLimit, {});
    }
  }
}

void Core::run_pass() {
  const Policy& policy = state_.policy();
  const bool whole = every_pass_full();
  if (state_.changes().freed != seen_.changes.freed) restart_waiting();
  seen_ = {state_.changes(), queued_};
  if (!first_pass_) last_pass_ = now_;
  first_pass_ = false;
  PassResult result = scheduler_->decide(state_.situation(now_), policy,
                                         whole ? PassKind::kFull : PassKind::kIncremental);
  ++(whole ? passes_.full : passes_.incremental);
  const Instant holds_until = result.holds_until;
  wake_asked_ = result.wake;
  const std::uint64_t before = state_.version();
  carry_out(result, now_);
  held_until_ = before == state_.version() ? holds_until : now_;
  held_version_ = state_.version();
}

// A proposal for an earlier fleet has other ids.
void Core::on(const Proposal& proposal) {
  full_asked_ = false;
  if (proposal.version < options_since_) {
    return refuse("the proposal is for the fleet or the requests of before");
  }
  ++passes_.full;
  PassResult result = proposal.result;
  carry_out(result, last_full_.value_or(now_));
}

void Core::carry_out(PassResult& result, Instant looked_at) {
  passes_.candidates += result.candidates;
  passes_.placements += result.placements;
  for (const Decision& decision : result.decisions) {
    if (const auto* start_job = std::get_if<StartJob>(&decision)) {
      const std::string why = why_stale(*start_job, state_.fleet().view());
      if (why.empty()) {
        start(*start_job);
      } else {
        emit(DecisionDropped{start_job->job, why});
      }
    } else if (const auto* victim = std::get_if<PreemptJob>(&decision)) {
      preempt(*victim);
    } else if (const auto* other = std::get_if<ResizeJob>(&decision)) {
      resize(*other);
    } else if (const auto* clock = std::get_if<SetClock>(&decision)) {
      if (!may_set(*clock, looked_at)) continue;
      const Job& job = state_.job(clock->job);
      emit(ClockSet{clock->job, clock->gang, clock->terms,
                    state_.running(clock->job).done_at(now_)});
      act(ApplyClock{clock->job, job.attempt, clock->gang, clock->terms.clock});
    } else if (const auto* want = std::get_if<WantPlan>(&decision)) {
      if (plans_asked_.insert(want->key).second) act(SearchPlan{want->key});
    }
  }
  // The proposal may be of an earlier state: it may keep slots for jobs that have started or ended
  // since, and does not know whether a job that moves has been cancelled meanwhile.
  std::erase_if(result.reservations, [this](const Reservation& slot) {
    return !state_.has(slot.job) || !will_wait(state_.job(slot.job));
  });
  const std::span<const Reservation> slots = state_.slots();
  const bool kept = slots.size() == result.reservations.size() &&
                    std::equal(slots.begin(), slots.end(), result.reservations.begin(), same);
  if (!kept) emit(SlotsReserved{std::move(result.reservations)});
  note_idle(result);
  last_ = std::move(result);
}

namespace {

/// Returns why gangs with these terms, one each, draw too much beside the planned power; empty:
/// they do not.
std::string above_limit(PowerBudget budget, const PowerCaps& caps,
                        std::span<const PlacedGang> gangs, std::span<const GangTerms> terms) {
  for (std::size_t i = 0; i < gangs.size(); ++i) {
    const auto draws = draws_of_gang(budget.tree(), gangs[i], terms[i].draw);
    if (budget.try_add(caps, draws)) return "above a power limit by now";
  }
  return {};
}

/// Returns, by type, how many devices `gangs` have more than `instead_of`, gangs of the same job.
std::map<FleetTypeId, std::int64_t> devices_more(const JobRequest& request,
                                                 std::span<const PlacedGang> gangs,
                                                 std::span<const PlacedGang> instead_of) {
  std::map<FleetTypeId, std::int64_t> more;
  const auto count = [&](std::span<const PlacedGang> of, std::int64_t sign) {
    for (const PlacedGang& gang : of) {
      const GangRequest& asked = request.roles[gang.role].options[gang.option].gang;
      more[asked.type] += sign * asked.devices;
    }
  };
  count(gangs, 1);
  count(instead_of, -1);
  return more;
}

}  // namespace

// Whether the quota of the job's tenant has no room for the devices that `gangs` have more than
// `instead_of`.
bool Core::beyond_quota(const JobRequest& request, std::span<const PlacedGang> gangs,
                        std::span<const PlacedGang> instead_of) const {
  if (state_.policy().quotas != Quotas::kHeld) return false;
  const auto more = devices_more(request, gangs, instead_of);
  const Situation s = state_.situation(now_);
  return std::any_of(more.begin(), more.end(), [&](const auto& entry) {
    return entry.second > 0 && entry.second > s.usage->room(request.tenant, entry.first).devices;
  });
}

// Whether a job that continues with `left`, or stops, would give devices that are guaranteed to its
// own tenants to a job of another tenant. For guarantees, a stopping job counts as gone.
bool Core::loses_guaranteed(JobId id, JobId in_favour_of, std::span<const PlacedGang> left) const {
  if (state_.policy().quotas != Quotas::kHeld || !state_.has(in_favour_of)) return false;
  const TenantId tenant = state_.job(id).tenant;
  const TenantId other = state_.job(in_favour_of).tenant;
  if (tenant == other) return false;
  TenantUsage usage = *state_.situation(now_).usage;
  for (const RunningJob& run : state_.running()) {
    if (!run.stopping) continue;
    for (const auto& [type, devices] : devices_more(*run.request, run.gangs, {})) {
      usage.apply({run.request->tenant, type, rank_of(*run.request), -devices});
    }
  }
  const RunningJob& run = state_.running(id);
  const auto lost = devices_more(*run.request, run.gangs, left);
  return std::any_of(lost.begin(), lost.end(), [&](const auto& entry) {
    return entry.second > usage.above_guarantee(tenant, entry.first, other);
  });
}

// The gang must still run as it did when the pass looked, and its draw must still fit.
bool Core::may_set(const SetClock& clock, Instant looked_at) const {
  if (!state_.has(clock.job)) return false;
  const JobPhase phase = state_.job(clock.job).phase;
  if (!holds_devices(phase) || phase == JobPhase::kStopping) return false;
  const RunningJob& run = state_.running(clock.job);
  if (run.started > looked_at || clock.gang >= run.gangs.size()) return false;
  const GangTerms& now = run.terms[clock.gang];
  if (now.plan != clock.terms.plan || now.ratio != clock.terms.ratio) return false;
  const Situation s = state_.situation(now_);
  if (s.power == nullptr || clock.terms.draw <= now.draw) return true;
  const PlacedGang& gang = run.gangs[clock.gang];
  PowerBudget budget = *s.power;
  budget.remove(draws_of_gang(budget.tree(), gang, now.draw));
  return above_limit(std::move(budget), *s.caps, {&gang, 1}, {&clock.terms, 1}).empty();
}

std::string Core::why_stale(const StartJob& start, const FleetView& view) const {
  if (!state_.has(start.job) || state_.job(start.job).phase != JobPhase::kQueued) {
    return "it does not wait any more";
  }
  const Situation s = state_.situation(now_);
  const JobRequest& request = state_.job(start.job).submission->request;
  for (const PlacedGang& gang : start.gangs) {
    for (const NodeDevices& at : gang.allocation.ranks) {
      const NodeState& node = view.node(at.node);
      if (node.health != NodeHealth::kReady) return "a node is not ready any more";
    }
    if (!there(view, gang.allocation, state_.policy().oversubscription)) {
      return "devices are not free any more";
    }
  }
  if (beyond_quota(request, start.gangs, {})) return "beyond the quota by now";
  if (too_near(*state_.setup().tree, request, start.gangs, state_.running())) {
    return "another replica is there by now";
  }
  if (s.power == nullptr) return {};
  return above_limit(*s.power, *s.caps, start.gangs, start.terms);
}

std::string Core::why_stale(const ResizeJob& resize, const FleetView& view) const {
  const JobPhase phase = state_.job(resize.job).phase;
  if (phase != JobPhase::kRunning || !state_.job(resize.job).up) return "it does not run";
  std::map<NodeId, std::uint64_t> mine;
  for (const PlacedGang& gang : state_.running(resize.job).gangs) {
    for (const NodeDevices& at : gang.allocation.ranks) mine[at.node] |= at.devices;
  }
  for (const PlacedGang& gang : resize.gangs) {
    const bool share = gang.allocation.share < kWholeDevice;
    if (share && !there(view, gang.allocation, state_.policy().oversubscription)) {
      return "the device is full by now";
    }
    for (const NodeDevices& at : gang.allocation.ranks) {
      const auto has = mine.find(at.node);
      const std::uint64_t more = at.devices & ~(has == mine.end() ? 0 : has->second);
      const NodeState& node = view.node(at.node);
      if (node.health != NodeHealth::kReady) return "a node is not ready any more";
      if (!share && (node.free_mask & more) != more) return "devices are not free any more";
    }
  }
  const RunningJob& run = state_.running(resize.job);
  if (beyond_quota(*run.request, resize.gangs, run.gangs)) return "beyond the quota by now";
  if (resize.in_favour_of && loses_guaranteed(resize.job, *resize.in_favour_of, resize.gangs)) {
    return kGuaranteed;
  }
  const Situation s = state_.situation(now_);
  if (s.power == nullptr) return {};
  PowerBudget budget = *s.power;
  for (std::size_t i = 0; i < run.gangs.size(); ++i) {
    budget.remove(draws_of_gang(budget.tree(), run.gangs[i], run.terms[i].draw));
  }
  return above_limit(budget, *s.caps, resize.gangs, resize.terms);
}

// Continues a job on other devices in a new epoch.
void Core::go_on_as(const ResizeJob& resize) {
  const Job& job = state_.job(resize.job);
  const std::uint32_t epoch = job.epoch + 1;
  emit(JobResized{resize.job, epoch, resize.gangs, resize.terms,
                  resize.in_favour_of.value_or(JobId()), state_.running(resize.job).done_at(now_)});
  act(StartRanks{resize.job, job.attempt, epoch, Duration(), false});
}

void Core::preempt(const PreemptJob& preempt) {
  if (!state_.has(preempt.job)) return;
  const JobPhase phase = state_.job(preempt.job).phase;
  if (!holds_devices(phase) || phase == JobPhase::kStopping) return;
  if (loses_guaranteed(preempt.job, preempt.in_favour_of, {})) {
    return emit(DecisionDropped{preempt.job, kGuaranteed});
  }
  const bool for_power = !preempt.in_favour_of.valid();
  stop(preempt.job, for_power ? StopReason::kPower : StopReason::kPreempted, {},
       preempt.in_favour_of);
}

// A job that should shrink in favour of another and cannot is preempted.
void Core::resize(const ResizeJob& resize) {
  if (!state_.has(resize.job)) return;
  const std::string why = why_stale(resize, state_.fleet().view());
  const Job& job = state_.job(resize.job);
  if (why.empty()) return go_on_as(resize);
  emit(DecisionDropped{resize.job, why});
  const bool runs = holds_devices(job.phase) && job.phase != JobPhase::kStopping;
  if (resize.in_favour_of && runs && !loses_guaranteed(resize.job, *resize.in_favour_of, {})) {
    stop(resize.job, StopReason::kPreempted, {}, *resize.in_favour_of);
  }
}

// The cause of a type's idle devices is that of the first waiting job that wants the type.
void Core::note_idle(const PassResult& result) {
  const Topology& topology = *state_.setup().topology;
  std::vector<std::optional<DeviceUse>> causes(topology.type_count());
  std::size_t open = causes.size();
  for (const StillWaits& waits : result.waiting) {
    if (open == 0) break;
    if (!state_.has(waits.job)) continue;
    const Job& job = state_.job(waits.job);
    if (job.submission == nullptr) continue;
    for (const RoleRequest& role : job.submission->request.roles) {
      for (const GangOption& option : role.options) {
        std::optional<DeviceUse>& cause = causes[option.gang.type.value()];
        if (cause) continue;
        const FreeCount free = state_.fleet().view().free(Topology::root(), option.gang.type);
        cause = cause_of(waits.refusal, free.devices, option.gang.devices);
        const bool room = cause == DeviceUse::kFragmented || cause == DeviceUse::kTooFew;
        if (room && std::ranges::binary_search(result.held_back, option.gang.type)) {
          cause = DeviceUse::kOrder;
        }
        if (cause == DeviceUse::kFragmented && !state_.slots().empty()) {
          cause = DeviceUse::kReserved;
        }
        --open;
      }
    }
  }
  for (std::uint32_t t = 0; t < causes.size(); ++t) {
    const DeviceUse cause = causes[t].value_or(DeviceUse::kNoDemand);
    if (cause != state_.idle_cause(FleetTypeId(t))) {
      emit(IdleCauseSet{FleetTypeId(t), static_cast<std::uint8_t>(cause)});
    }
  }
}

}  // namespace orrery
