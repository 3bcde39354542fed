#include "control/passes/decisions.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "control/jobs/decision_check.hpp"

namespace orrery {
namespace {

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

bool same(const Reservation& a, const Reservation& b) {
  if (a.job != b.job || a.start != b.start || a.gangs.size() != b.gangs.size()) return false;
  for (std::size_t i = 0; i < a.gangs.size(); ++i) {
    if (!(a.gangs[i].allocation == b.gangs[i].allocation)) return false;
  }
  return true;
}

/// Whether the job of a slot waits, or stops only to wait again.
bool will_wait(const Job& job) {
  if (job.phase == JobPhase::kQueued) return true;
  const bool over = job.stop == StopReason::kFinished || job.stop == StopReason::kTimeLimit ||
                    job.stop == StopReason::kCancelled || job.stop == StopReason::kRefused;
  return job.phase == JobPhase::kStopping && !job.cancel && !over;
}

}  // namespace

void Decisions::carry_out(PassKind kind, PassResult result, Instant looked_at) {
  ++(kind == PassKind::kFull ? counts_.full : counts_.incremental);
  counts_.candidates += result.candidates;
  counts_.placements += result.placements;
  for (const Decision& decision : result.decisions) {
    if (const auto* start = std::get_if<StartJob>(&decision)) {
      carry_out(*start);
    } else if (const auto* victim = std::get_if<PreemptJob>(&decision)) {
      carry_out(*victim);
    } else if (const auto* other = std::get_if<ResizeJob>(&decision)) {
      carry_out(*other);
    } else if (const auto* clock = std::get_if<SetClock>(&decision)) {
      carry_out(*clock, looked_at);
    } else if (const auto* want = std::get_if<WantPlan>(&decision)) {
      parts_.plans.request(want->key);
    }
  }
  reserve(result);
  note_idle(result);
  last_ = std::move(result);
}

void Decisions::carry_out(const StartJob& start) {
  const std::string why =
      DecisionCheck(state_, recorder_.now()).why_stale(start, state_.fleet().view());
  if (why.empty()) {
    parts_.starts.start(start);
  } else {
    recorder_.emit(DecisionDropped{start.job, why});
  }
}

void Decisions::carry_out(const PreemptJob& preempt) {
  if (!state_.has(preempt.job)) return;
  const JobPhase phase = state_.job(preempt.job).phase;
  if (!holds_devices(phase) || phase == JobPhase::kStopping) return;
  std::string why =
      DecisionCheck(state_, recorder_.now()).why_kept(preempt.job, preempt.in_favour_of, {});
  if (!why.empty()) return recorder_.emit(DecisionDropped{preempt.job, std::move(why)});
  const bool for_power = !preempt.in_favour_of.valid();
  parts_.jobs.stop(preempt.job, for_power ? StopReason::kPower : StopReason::kPreempted, {},
                   preempt.in_favour_of);
}

void Decisions::carry_out(const ResizeJob& resize) {
  if (!state_.has(resize.job)) return;
  const std::string why =
      DecisionCheck(state_, recorder_.now()).why_stale(resize, state_.fleet().view());
  const Job& job = state_.job(resize.job);
  if (why.empty()) return parts_.starts.go_on_as(resize);
  recorder_.emit(DecisionDropped{resize.job, why});
  const bool runs = holds_devices(job.phase) && job.phase != JobPhase::kStopping;
  if (!resize.in_favour_of || !runs) return;
  const DecisionCheck check(state_, recorder_.now());
  if (!check.why_kept(resize.job, *resize.in_favour_of, {}).empty()) return;
  parts_.jobs.stop(resize.job, StopReason::kPreempted, {}, *resize.in_favour_of);
}

void Decisions::carry_out(const SetClock& clock, Instant looked_at) {
  if (!DecisionCheck(state_, recorder_.now()).may_set(clock, looked_at)) return;
  const Job& job = state_.job(clock.job);
  recorder_.emit(ClockSet{clock.job, clock.gang, clock.terms,
                          state_.running(clock.job).done_at(recorder_.now())});
  recorder_.act(ApplyClock{clock.job, job.attempt, clock.gang, clock.terms.clock});
}

void Decisions::reserve(PassResult& result) {
  // The proposal may be of an earlier state: it may keep slots for jobs that have started or ended
  // since, and does not know whether a job that moves has been cancelled meanwhile.
  std::erase_if(result.reservations, [this](const Reservation& slot) {
    return !state_.has(slot.job) || !will_wait(state_.job(slot.job));
  });
  const std::span<const Reservation> slots = state_.slots();
  const bool kept = slots.size() == result.reservations.size() &&
                    std::equal(slots.begin(), slots.end(), result.reservations.begin(), same);
  if (!kept) recorder_.emit(SlotsReserved{std::move(result.reservations)});
}

// The cause of a type's idle devices is that of the first waiting job that wants the type.
void Decisions::note_idle(const PassResult& result) {
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
      recorder_.emit(IdleCauseSet{FleetTypeId(t), static_cast<std::uint8_t>(cause)});
    }
  }
}

}  // namespace orrery
