// Overtaking: running jobs stop for a waiting job that has far less work left, so that the order
// inside a tenant also holds among running jobs.
#include <algorithm>
#include <cmath>
#include <limits>

#include "scheduler/forecast/guaranteed_potential.hpp"
#include "scheduler/pass/pass.hpp"
#include "scheduler/price/run_time.hpp"
#include "scheduler/tenants/queue_order.hpp"
#include "scheduler/tenants/slack.hpp"

namespace orrery {

// `yield_ratio` and `min_run` bound what overtaken jobs lose. The job with the most service left
// may be overtaken by most others, and is overtaken first.
bool Pass::overtake(const QueuedJob& queued, const Refusal& refusal) {
  const bool helps = refusal.kind == RejectionKind::kBusy || refusal.kind == RejectionKind::kQuota;
  if (policy_.yield_ratio == 0 || policy_.order != QueueOrder::kFair || !helps || queued.serves ||
      overtakes_ >= kVainPreemptions) {
    return false;
  }
  const WaitingJob& job = job_of(queued);
  const double mine = queued.ages ? queued.key.second : aged_service(job, policy_, s_);
  const double least = mine * policy_.yield_ratio;
  const Pressed pressed = queued.dated && is_overdue(job) ? Pressed::kYes : Pressed::kNo;
  const double most = most_service(queued);
  if (most <= 0 || (most < least && pressed == Pressed::kNo)) return false;
  const bool too_few = too_few_with(job, pressed == Pressed::kYes ? 0 : least);
  if (!too_few && overtakes_in_vain(queued)) {
    ++overtakes_;
    return false;
  }
  FoundOrRefusal as_it_is = tl::unexpected(refusal);
  if (!too_few) as_it_is = find_in(m_.now_->view(), job);
  if (as_it_is && !may_use_kept(job, *as_it_is)) return false;
  // Devices that jobs of other tenants free do not help within the limits of the job's tenant.
  own_leave_ = refusal.kind == RejectionKind::kQuota || !may_take_any(queued);
  const std::vector<std::uint32_t> who =
      who_is_overtaken(job, least, pressed, too_few ? Overtaken::kAny : Overtaken::kAll);
  bool made_room = false;
  if (!who.empty() && as_it_is) {
    start(job, *std::move(as_it_is));
    made_room = true;
  } else if (!who.empty() && !too_few && enough_with(devices_of(who), *job.request)) {
    made_room = overtake_some_of(job, who);
  }
  own_leave_ = false;
  if (who.empty() || made_room) return made_room;
  Leavers& leavers = askers_[queued.asker].overtaken;
  if (!leavers.in_vain || leavers.under != usage_changes_) leavers = {usage_changes_, {}, true, {}};
  ++overtakes_;
  return false;
}

// A job that is pressed by a deadline overtakes all jobs of its tenant without one.
std::vector<std::uint32_t> Pass::who_is_overtaken(const WaitingJob& job, double least,
                                                  Pressed pressed, Overtaken wanted) {
  std::vector<std::uint32_t> who;
  const double floor = pressed == Pressed::kYes ? 0 : least;
  yielders().each_settled(floor, [&](const Yielders::Settled& other) {
    const RunningJob& running = s_.running[other.at];
    const bool own = running.request->tenant == job.request->tenant;
    const bool passes = pressed == Pressed::kYes && own && !running.request->deadline;
    const bool enough = other.service >= least || passes;
    if (enough && (!own_leave_ || own) && may_be_overtaken(*job.request, other.at) &&
        !would_be_late(running, job)) {
      who.push_back(other.at);
      if (wanted == Overtaken::kAny) return std::numeric_limits<double>::infinity();
    }
    return floor;
  });
  return who;
}

bool Pass::overtake_some_of(const WaitingJob& job, std::span<const std::uint32_t> who) {
  double smallest = std::numeric_limits<double>::infinity();
  for (const std::uint32_t i : who) {
    smallest = std::min(smallest, yielders().settled(i).service);
  }
  return take_from(
      job, who,
      [&](std::uint32_t i) {
        const Yielders::Settled& other = yielders().settled(i);
        return std::llround(1e9 * smallest / other.service) * other.devices;
      },
      [&](const PreemptionPlan& plan) { return object_to_overtaking(job, plan); });
}

// Whether a job has to start now to keep its deadline.
bool Pass::is_overdue(const WaitingJob& job) const {
  if (policy_.inside != TenantOrder::kService) return false;
  const std::optional<Slack> slack = slack_of(job, policy_, s_);
  return slack && slack->kept() && slack->spare() <= Duration();
}

// Whether a job would miss its deadline if it waited for the longest run that waits in its tenant.
bool Pass::is_pressed(const WaitingJob& job) {
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

// Whether a running job keeps its deadline now, but not if it waits until another job is done.
bool Pass::would_be_late(const RunningJob& running, const WaitingJob& other) const {
  if (!running.request->deadline) return false;
  const std::optional<Slack> slack = slack_if_stopped(running, policy_, s_);
  const Duration unknown = Duration::from_seconds(policy_.unknown_run.value());
  return slack && slack->kept() && slack->spare() < time_left(other, s_.plans, unknown);
}

// From the second search on, a job is skipped if it finds no room without all jobs it may overtake.
bool Pass::overtakes_in_vain(const QueuedJob& queued) {
  Leavers& leavers = askers_[queued.asker].overtaken;
  if (!leavers.in_vain || leavers.under != usage_changes_) return false;
  const WaitingJob& job = job_of(queued);
  if (leavers.who.empty()) {
    yielders().each_settled(0, [&](const Yielders::Settled& other) {
      if (may_be_overtaken(*job.request, other.at)) leavers.who.push_back(other.at);
      return 0.0;
    });
  }
  return no_room_without(leavers, job);
}

// Precondition: the running job is preemptible and writes checkpoints.
bool Pass::may_be_overtaken(const JobRequest& mine, std::uint32_t running) const {
  if (stopped_[running] != 0) return false;
  const RunningJob& other = s_.running[running];
  const bool own = other.request->tenant == mine.tenant;
  const bool equal = own ? rank_in_tenant(*other.request, policy_) == rank_in_tenant(mine, policy_)
                         : rank_of(*other.request) == rank_of(mine);
  return equal && (own || is_lent(other, mine.tenant));
}

// Whether a job holds devices that its tenant borrows, and that tenant has a larger weighted share
// than the claimant.
bool Pass::is_lent(const RunningJob& job, TenantId claimant) const {
  return std::all_of(job.gangs.begin(), job.gangs.end(), [&](const PlacedGang& gang) {
    const FleetTypeId type = request_of(*job.request, gang).type;
    return usage().above_guarantee(job.request->tenant, type, claimant) > 0 &&
           usage().share(job.request->tenant, claimant, type) >
               usage().share(claimant, job.request->tenant, type);
  });
}

// The most service of the jobs that a job of the same tenant and rank may overtake; 0: there are
// none.
double Pass::most_service(const QueuedJob& queued) {
  Asker& asker = askers_[queued.asker];
  if (asker.most_under != usage_changes_) {
    const JobRequest& mine = *job_of(queued).request;
    double most = 0;
    yielders().each_settled(0, [&](const Yielders::Settled& other) {
      if (other.service > most && may_be_overtaken(mine, other.at)) most = other.service;
      return most;
    });
    asker.most_service = most;
    asker.most_under = usage_changes_;
  }
  return asker.most_service;
}

// A tenant may take from itself as long as it keeps its limits.
std::optional<std::uint32_t> Pass::object_to_overtaking(const WaitingJob& job,
                                                        const PreemptionPlan& plan) const {
  if (policy_.quotas == Quotas::kIgnored || plan.yields.empty()) return std::nullopt;
  const std::vector<UsageChange> changes = changes_of(job, plan);
  if (breaks_guarantee(usage(), changes)) return plan.yields.back().victim;
  TenantUsage after = usage();
  for (const UsageChange& change : changes) after.apply(change);
  for (const UsageChange& change : changes) {
    if (change.devices > 0 && !after.within_limits(change.tenant, change.type)) {
      return plan.yields.back().victim;
    }
  }
  // Its weighted share may not exceed the share that the other tenant had.
  const TenantId mine = job.request->tenant;
  for (const Yield& one : plan.yields) {
    const RunningJob& running = s_.running[yielding_[one.victim]];
    const TenantId theirs = running.request->tenant;
    if (theirs == mine) continue;
    const FleetTypeId type = request_of(*running.request, running.gangs.front()).type;
    if (after.share(mine, theirs, type) > usage().share(theirs, mine, type)) return one.victim;
  }
  return std::nullopt;
}

// Compares numbers alone: free devices plus those of all jobs with at least `service`, even if
// these may not be overtaken.
bool Pass::too_few_with(const WaitingJob& job, double service) {
  if (!asks_by_number(*job.request)) return false;
  const std::uint64_t left = yielders().devices_with(service);
  const FleetView now = m_.now_->view();
  const std::vector<GangOption>& options = job.request->roles.front().options;
  return std::none_of(options.begin(), options.end(), [&](const GangOption& option) {
    return now.free(Topology::root(), option.gang.type).devices + left >= option.gang.devices;
  });
}

}  // namespace orrery
