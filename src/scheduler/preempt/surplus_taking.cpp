#include "scheduler/preempt/surplus_taking.hpp"

#include "scheduler/forecast/guaranteed_potential.hpp"
#include "scheduler/pass/running_gang.hpp"
#include "scheduler/tenants/queue_order.hpp"

namespace orrery {

SurplusTaking::SurplusTaking(PassContext& pass, LeavingJobs& leaving, DeviceTaking& taking)
    : pass_(pass),
      s_(pass.situation),
      policy_(pass.policy),
      leaving_(leaving),
      taking_(taking),
      no_surplus_(leaving.askers(), UsageEdits::kNever) {}

bool SurplusTaking::make_room(const QueuedJob& queued, const Refusal& refusal) {
  const bool helps =
      policy_.choice == OptionChoice::kCheapest && refusal.kind == RejectionKind::kBusy;
  if (!helps || taking_.gives_up()) return false;
  if (no_surplus_[queued.asker] == pass_.usage.changes()) return false;
  const WaitingJob& job = s_.waiting[queued.at];
  std::vector<std::uint32_t> who;
  leaving_.yielders().each_elastic([&](std::uint32_t i) {
    if (!pass_.is_decided(i) && has_surplus_for(job, s_.running[i])) who.push_back(i);
  });
  const bool made_room = taking_.preempt(
      job, {.who = who,
            .cost = [&](std::uint32_t i) { return taking_.lost_device_milliseconds(i); },
            .object = [&](const PreemptionPlan& plan) { return object_to_shrinking(job, plan); }});
  if (who.empty()) {
    no_surplus_[queued.asker] = pass_.usage.changes();
  } else {
    pass_.hold_until(s_.now);
  }
  return made_room;
}

bool SurplusTaking::has_surplus_for(const WaitingJob& job, const RunningJob& running) {
  const JobRequest& mine = *job.request;
  const JobRequest& theirs = *running.request;
  if (rank_of(mine) < rank_of(theirs)) return false;
  const GangRequest& has = request_of(theirs, running.gangs.front());
  const Instant settled = running.started + Duration::from_seconds(policy_.min_run.value());
  if (s_.now < settled && rank_of(mine) == rank_of(theirs)) {
    pass_.hold_until(settled);
    return false;
  }
  return policy_.quotas == Quotas::kIgnored || theirs.tenant == mine.tenant ||
         pass_.usage.now().above_guarantee(theirs.tenant, has.type, mine.tenant) > 0;
}

// Returns the first victim that would have to stop, or whose tenant would fall below its
// guarantees.
std::optional<std::uint32_t> SurplusTaking::object_to_shrinking(const WaitingJob& job,
                                                                const PreemptionPlan& plan) {
  std::vector<PlacedGang> kept = plan.gangs;
  std::vector<UsageChange> changes = taking_.changes_of(job, {{}, plan.gangs, 0});
  for (const Yield& one : plan.yields) {
    const RunningJob& running = taking_.victim(one);
    const std::optional<PlannedStart> smaller = taking_.smaller_of(running, kept);
    if (!smaller) return one.victim;
    kept.push_back(smaller->gangs.front());
    const JobRequest& theirs = *running.request;
    const GangRequest& has = request_of(theirs, running.gangs.front());
    const GangRequest& keeps = request_of(theirs, kept.back());
    changes.push_back({theirs.tenant, has.type, rank_of(theirs),
                       std::int64_t{keeps.devices} - std::int64_t{has.devices}});
    const bool held = policy_.quotas == Quotas::kHeld;
    if (held && breaks_guarantee(pass_.usage.now(), changes)) return one.victim;
  }
  return std::nullopt;
}

}  // namespace orrery
