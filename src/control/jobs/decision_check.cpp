#include "control/jobs/decision_check.hpp"

#include <algorithm>
#include <map>

#include "scheduler/power/gang_power.hpp"
#include "scheduler/request/job_array.hpp"
#include "scheduler/tenants/queue_order.hpp"

namespace orrery {
namespace {

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
  const auto count = [&](std::span<const PlacedGang> placed, std::int64_t sign) {
    for (const PlacedGang& gang : placed) {
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
bool DecisionCheck::beyond_quota(const JobRequest& request, std::span<const PlacedGang> gangs,
                                 std::span<const PlacedGang> instead_of) const {
  if (state_.policy().quotas != Quotas::kHeld) return false;
  const auto more = devices_more(request, gangs, instead_of);
  const Situation s = state_.situation(now_);
  return std::any_of(more.begin(), more.end(), [&](const auto& entry) {
    return entry.second > 0 && entry.second > s.usage->room(request.tenant, entry.first).devices;
  });
}

std::string DecisionCheck::why_kept(JobId id, JobId in_favour_of,
                                    std::span<const PlacedGang> left) const {
  if (!in_favour_of.valid()) return {};
  if (!state_.has(in_favour_of) || ended(state_.job(in_favour_of).phase)) {
    return "the job that was to have its devices has ended";
  }
  if (!loses_guaranteed(id, in_favour_of, left)) return {};
  return "its tenant is guaranteed by now what it would lose";
}

bool DecisionCheck::loses_guaranteed(JobId id, JobId in_favour_of,
                                     std::span<const PlacedGang> left) const {
  if (state_.policy().quotas != Quotas::kHeld) return false;
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

bool DecisionCheck::may_set(const SetClock& clock, Instant looked_at) const {
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

/// Whether a job may come to the node: it is ready, and not for another job alone.
bool DecisionCheck::is_ready(const FleetView& view, NodeId node, JobId job) const {
  if (view.node(node).health == NodeHealth::kReady) return true;
  const JobId only = bound_job(state_.node(node));
  return only.valid() && only == job;
}

std::string DecisionCheck::why_stale(const StartJob& start, const FleetView& view) const {
  if (!state_.has(start.job) || state_.job(start.job).phase != JobPhase::kQueued) {
    return "it does not wait any more";
  }
  const Situation s = state_.situation(now_);
  const JobRequest& request = state_.job(start.job).submission->request;
  for (const PlacedGang& gang : start.gangs) {
    for (const NodeDevices& at : gang.allocation.ranks) {
      if (!is_ready(view, at.node, start.job)) return "a node is not ready any more";
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

std::string DecisionCheck::why_stale(const ResizeJob& resize, const FleetView& view) const {
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
      if (!is_ready(view, at.node, resize.job)) return "a node is not ready any more";
      if (!share && (node.free_mask & more) != more) return "devices are not free any more";
    }
  }
  const RunningJob& run = state_.running(resize.job);
  if (beyond_quota(*run.request, resize.gangs, run.gangs)) return "beyond the quota by now";
  const JobId in_favour_of = resize.in_favour_of.value_or(JobId());
  if (std::string why = why_kept(resize.job, in_favour_of, resize.gangs); !why.empty()) return why;
  const Situation s = state_.situation(now_);
  if (s.power == nullptr) return {};
  PowerBudget budget = *s.power;
  for (std::size_t i = 0; i < run.gangs.size(); ++i) {
    budget.remove(draws_of_gang(budget.tree(), run.gangs[i], run.terms[i].draw));
  }
  return above_limit(budget, *s.caps, resize.gangs, resize.terms);
}

}  // namespace orrery
