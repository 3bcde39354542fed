#include "scheduler/preempt/overtaking.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "scheduler/forecast/guaranteed_potential.hpp"
#include "scheduler/pass/running_gang.hpp"
#include "scheduler/price/run_time.hpp"
#include "scheduler/tenants/queue_order.hpp"
#include "scheduler/tenants/slack.hpp"

namespace orrery {

Overtaking::Overtaking(PassContext& pass, StartSearch& search, LeavingJobs& leaving,
                       DeviceTaking& taking)
    : pass_(pass),
      s_(pass.situation),
      policy_(pass.policy),
      search_(search),
      leaving_(leaving),
      taking_(taking),
      askers_(leaving.askers()) {}

bool Overtaking::make_room(const QueuedJob& queued, const Refusal& refusal) {
  const bool helps = refusal.kind == RejectionKind::kBusy || refusal.kind == RejectionKind::kQuota;
  if (policy_.yield_ratio == 0 || policy_.order != QueueOrder::kFair || !helps || queued.serves ||
      vain_ >= kVainPreemptions) {
    return false;
  }
  const WaitingJob& job = s_.waiting[queued.at];
  const double mine = queued.ages ? queued.key.second : aged_service(job, policy_, s_);
  const double least = mine * policy_.yield_ratio;
  const Pressed pressed = queued.dated && is_overdue(job) ? Pressed::kYes : Pressed::kNo;
  const double most = most_service(queued);
  if (most <= 0 || (most < least && pressed == Pressed::kNo)) return false;
  const bool too_few = leaving_.too_few_with(job, pressed == Pressed::kYes ? 0 : least);
  if (!too_few && is_in_vain(queued)) {
    ++vain_;
    return false;
  }
  StartOrRefusal as_it_is = tl::unexpected(StartRefusal{refusal});
  if (!too_few) as_it_is = search_.in(pass_.fleet.now(), job);
  if (as_it_is && !taking_.may_use_kept(job, *as_it_is)) return false;
  // Devices that jobs of other tenants free do not help within the limits of the job's tenant.
  const bool own_leave =
      refusal.kind == RejectionKind::kQuota || !pass_.usage.may_take_any(*job.request);
  const Ask ask{job, least, pressed, own_leave ? FreedBy::kOwnTenant : FreedBy::kOthers};
  const std::vector<std::uint32_t> who =
      who_is_overtaken(ask, too_few ? Listed::kAny : Listed::kAll);
  bool made_room = false;
  if (!who.empty() && as_it_is) {
    pass_.start(job, *std::move(as_it_is));
    made_room = true;
  } else if (!who.empty() && !too_few &&
             leaving_.enough_with(leaving_.devices_of(who), *job.request)) {
    made_room = overtake_some_of(ask, who);
  }
  if (who.empty() || made_room) return made_room;
  LeaverList& leavers = askers_[queued.asker].overtaken;
  if (!leavers.in_vain || leavers.under != pass_.usage.changes())
    leavers = {pass_.usage.changes(), {}, true, {}};
  ++vain_;
  return false;
}

// A job that is pressed by a deadline overtakes all jobs of its tenant without one.
std::vector<std::uint32_t> Overtaking::who_is_overtaken(const Ask& ask, Listed listed) {
  std::vector<std::uint32_t> who;
  const WaitingJob& job = ask.job;
  const double floor = ask.pressed == Pressed::kYes ? 0 : ask.least;
  leaving_.yielders().each_settled(floor, [&](const Yielders::Settled& other) {
    const RunningJob& running = s_.running[other.at];
    const bool own = running.request->tenant == job.request->tenant;
    const bool passes = ask.pressed == Pressed::kYes && own && !running.request->deadline;
    const bool enough = other.service >= ask.least || passes;
    if (enough && (ask.freed_by == FreedBy::kOthers || own) &&
        may_be_overtaken(*job.request, other.at) && !would_be_late(running, job)) {
      who.push_back(other.at);
      if (listed == Listed::kAny) return std::numeric_limits<double>::infinity();
    }
    return floor;
  });
  return who;
}

bool Overtaking::overtake_some_of(const Ask& ask, std::span<const std::uint32_t> who) {
  double smallest = std::numeric_limits<double>::infinity();
  for (const std::uint32_t i : who) {
    smallest = std::min(smallest, leaving_.yielders().settled(i).service);
  }
  const auto cost = [&](std::uint32_t i) {
    const Yielders::Settled& other = leaving_.yielders().settled(i);
    return std::llround(1e9 * smallest / other.service) * other.devices;
  };
  return taking_.take(ask.job,
                      {.who = who,
                       .cost = cost,
                       .object = [&](const PreemptionPlan& plan) { return object(ask.job, plan); },
                       .freed_by = ask.freed_by});
}

bool Overtaking::is_overdue(const WaitingJob& job) const {
  if (policy_.inside != TenantOrder::kService) return false;
  const std::optional<Slack> slack = slack_of(job, policy_, s_);
  return slack && slack->kept() && slack->spare() <= Duration();
}

bool Overtaking::is_pressed(const WaitingJob& job) {
  if (policy_.inside != TenantOrder::kService || !job.request->deadline) return false;
  const std::optional<Slack> slack = slack_of(job, policy_, s_);
  if (!slack || !slack->kept()) return false;
  if (longest_waiting_.empty()) {
    const Duration unknown = Duration::from_seconds(policy_.unknown_run.value());
    for (const WaitingJob& other : s_.waiting) {
      Duration& longest = longest_waiting_[other.request->tenant];
      longest = std::max(longest, time_left(other, s_.plans, unknown));
    }
  }
  return slack->spare() < longest_waiting_[job.request->tenant];
}

bool Overtaking::would_be_late(const RunningJob& running, const WaitingJob& other) const {
  if (!running.request->deadline) return false;
  const std::optional<Slack> slack = slack_if_stopped(running, policy_, s_);
  const Duration unknown = Duration::from_seconds(policy_.unknown_run.value());
  return slack && slack->kept() && slack->spare() < time_left(other, s_.plans, unknown);
}

// From the second search on, a job is skipped if it finds no room without all jobs it may overtake.
bool Overtaking::is_in_vain(const QueuedJob& queued) {
  LeaverList& leavers = askers_[queued.asker].overtaken;
  if (!leavers.in_vain || leavers.under != pass_.usage.changes()) return false;
  const WaitingJob& job = s_.waiting[queued.at];
  if (leavers.who.empty()) {
    leaving_.yielders().each_settled(0, [&](const Yielders::Settled& other) {
      if (may_be_overtaken(*job.request, other.at)) leavers.who.push_back(other.at);
      return 0.0;
    });
  }
  return leaving_.no_room_without(leavers, job);
}

bool Overtaking::may_be_overtaken(const JobRequest& mine, std::uint32_t running) const {
  if (pass_.is_decided(running)) return false;
  const RunningJob& other = s_.running[running];
  const bool own = other.request->tenant == mine.tenant;
  const bool equal = own ? rank_in_tenant(*other.request, policy_) == rank_in_tenant(mine, policy_)
                         : rank_of(*other.request) == rank_of(mine);
  return equal && (own || is_lent(other, mine.tenant));
}

bool Overtaking::is_lent(const RunningJob& job, TenantId claimant) const {
  return std::all_of(job.gangs.begin(), job.gangs.end(), [&](const PlacedGang& gang) {
    const FleetTypeId type = request_of(*job.request, gang).type;
    return pass_.usage.now().above_guarantee(job.request->tenant, type, claimant) > 0 &&
           pass_.usage.now().share(job.request->tenant, claimant, type) >
               pass_.usage.now().share(claimant, job.request->tenant, type);
  });
}

double Overtaking::most_service(const QueuedJob& queued) {
  Asker& asker = askers_[queued.asker];
  if (asker.most_under != pass_.usage.changes()) {
    const JobRequest& mine = *s_.waiting[queued.at].request;
    double most = 0;
    leaving_.yielders().each_settled(0, [&](const Yielders::Settled& other) {
      if (other.service > most && may_be_overtaken(mine, other.at)) most = other.service;
      return most;
    });
    asker.most_service = most;
    asker.most_under = pass_.usage.changes();
  }
  return asker.most_service;
}

// A tenant may take from itself as long as it keeps its limits.
std::optional<std::uint32_t> Overtaking::object(const WaitingJob& job,
                                                const PreemptionPlan& plan) const {
  if (policy_.quotas == Quotas::kIgnored || plan.yields.empty()) return std::nullopt;
  const std::vector<UsageChange> changes = taking_.changes_of(job, plan);
  if (breaks_guarantee(pass_.usage.now(), changes)) return plan.yields.back().victim;
  TenantUsage after = pass_.usage.now();
  for (const UsageChange& change : changes) after.apply(change);
  for (const UsageChange& change : changes) {
    if (change.devices > 0 && !after.within_limits(change.tenant, change.type)) {
      return plan.yields.back().victim;
    }
  }
  // Its weighted share may not exceed the share that the other tenant had.
  const TenantId mine = job.request->tenant;
  for (const Yield& one : plan.yields) {
    const RunningJob& running = taking_.victim(one);
    const TenantId theirs = running.request->tenant;
    if (theirs == mine) continue;
    const FleetTypeId type = request_of(*running.request, running.gangs.front()).type;
    if (after.share(mine, theirs, type) > pass_.usage.now().share(theirs, mine, type))
      return one.victim;
  }
  return std::nullopt;
}

}  // namespace orrery
