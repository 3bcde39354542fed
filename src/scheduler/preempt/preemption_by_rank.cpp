#include "scheduler/preempt/preemption_by_rank.hpp"

#include <algorithm>

#include "scheduler/pass/running_gang.hpp"
#include "scheduler/tenants/queue_order.hpp"

namespace orrery {

PreemptionByRank::PreemptionByRank(PassContext& pass, LeavingJobs& leaving, DeviceTaking& taking)
    : pass_(pass),
      s_(pass.situation),
      policy_(pass.policy),
      leaving_(leaving),
      taking_(taking),
      by_asker_(leaving.askers()) {}

bool PreemptionByRank::make_room(const QueuedJob& queued, const Refusal& refusal) {
  const bool room_helps =
      refusal.kind == RejectionKind::kBusy || refusal.kind == RejectionKind::kPower;
  if (!room_helps || taking_.gives_up()) return false;
  // The jobs that may be preempted depend on the tenant, the rank and the usage, so they are listed
  // once for each.
  const WaitingJob& job = s_.waiting[queued.at];
  LeaverList& leavers = by_asker_[queued.asker];
  if (leavers.under != pass_.usage.changes())
    leavers = {pass_.usage.changes(), who_may_yield(job), false, {}};
  if (leavers.who.empty()) return false;
  pass_.hold_until(s_.now);  // work at risk grows
  if (leavers.in_vain && leaving_.no_room_without(leavers, job)) {
    taking_.count_vain();
    return false;
  }
  const std::uint32_t tried = taking_.vain();
  const bool made_room = taking_.preempt(
      job, {.who = leavers.who,
            .cost = [&](std::uint32_t i) { return taking_.lost_device_milliseconds(i); },
            .object = [&](const PreemptionPlan& plan) { return taking_.unjustified(job, plan); }});
  leavers.in_vain = taking_.vain() > tried;
  return made_room;
}

std::vector<std::uint32_t> PreemptionByRank::who_may_yield(const WaitingJob& job) {
  const Yielders& running = leaving_.yielders();
  // Jobs that have not run for `min_run` limit how long the pass holds, if it may hold at all.
  const bool says_nothing = pass_.result.holds_until <= s_.now;
  std::vector<char> may(running.tenants());
  for (std::uint32_t t = 0; t < may.size(); ++t) {
    const std::int32_t lowest = running.lowest_rank(TenantId(t));
    if (lowest == Yielders::kNobody) continue;
    may[t] = says_nothing && nobody_may_yield(*job.request, TenantId(t), lowest) ? 0 : 1;
  }
  std::vector<std::uint32_t> who;
  if (std::find(may.begin(), may.end(), 1) == may.end()) return who;
  std::vector<Claim> claims(may.size() * s_.fleet.topology().type_count());
  running.each_preemptible(may, [&](std::uint32_t i) {
    if (!pass_.is_decided(i) && may_yield(job, s_.running[i], claims)) who.push_back(i);
  });
  return who;
}

bool PreemptionByRank::nobody_may_yield(const JobRequest& mine, TenantId theirs,
                                        std::int32_t lowest) const {
  const bool higher = rank_of(mine) > lowest;
  if (theirs == mine.tenant) return !higher;
  const std::uint32_t types = s_.fleet.topology().type_count();
  for (std::uint32_t t = 0; t < types; ++t) {
    const FleetTypeId type(t);
    if (pass_.usage.now().above_guarantee(theirs, type, mine.tenant) <= 0) continue;
    if (higher || pass_.usage.now().entitled(mine.tenant, type, 1, theirs)) return false;
  }
  return true;
}

// A job may take from lower ranks of its own tenant; from another tenant it may take what is above
// that tenant's guarantees, by its own right or else from lower ranks.
bool PreemptionByRank::may_yield(const WaitingJob& job, const RunningJob& running,
                                 std::span<Claim> claims) {
  const JobRequest& mine = *job.request;
  const JobRequest& theirs = *running.request;
  if (running.stopping || !theirs.preemptible) return false;
  const bool higher = rank_of(mine) > rank_of(theirs);
  const Instant settled = running.started + Duration::from_seconds(policy_.min_run.value());
  if (!higher && s_.now < settled) {
    pass_.hold_until(settled);
    return false;
  }
  if (theirs.tenant == mine.tenant) {
    return higher && rank_in_tenant(mine, policy_) > rank_in_tenant(theirs, policy_);
  }
  for (const PlacedGang& gang : running.gangs) {
    const FleetTypeId type = request_of(theirs, gang).type;
    Claim& claim = claims[theirs.tenant.value() * s_.fleet.topology().type_count() + type.value()];
    if (claim == Claim::kNotAsked) {
      const bool lent = pass_.usage.now().above_guarantee(theirs.tenant, type, mine.tenant) > 0;
      const bool right = lent && pass_.usage.now().entitled(mine.tenant, type, 1, theirs.tenant);
      claim = right ? Claim::kRight : lent ? Claim::kByRank : Claim::kNone;
    }
    if (claim == Claim::kNone || (claim == Claim::kByRank && !higher)) return false;
  }
  return true;
}

}  // namespace orrery
