#include "scheduler/preempt/device_taking.hpp"

#include <algorithm>
#include <cmath>

#include "scheduler/forecast/guaranteed_potential.hpp"
#include "scheduler/pass/closures.hpp"
#include "scheduler/pass/running_gang.hpp"
#include "scheduler/price/run_time.hpp"
#include "scheduler/request/job_array.hpp"
#include "scheduler/tenants/queue_order.hpp"

namespace orrery {

DeviceTaking::DeviceTaking(PassContext& pass, StartSearch& search, LeavingJobs& leaving,
                           PreemptionScratch& scratch)
    : pass_(pass),
      s_(pass.situation),
      policy_(pass.policy),
      search_(search),
      leaving_(leaving),
      scratch_(scratch) {}

bool DeviceTaking::preempt(const WaitingJob& job, const From& from) {
  if (from.who.empty()) return false;
  if (!leaving_.enough_with(leaving_.devices_of(from.who), *job.request)) {
    ++vain_;
    return false;
  }
  if (const std::optional<bool> started = start_as_it_is(job)) return *started;
  if (take(job, from)) return true;
  ++vain_;
  return false;
}

bool DeviceTaking::take(const WaitingJob& job, const From& from) {
  who_.assign(from.who.begin(), from.who.end());
  std::vector<Victim> victims;
  std::vector<HeldGang> held;
  std::size_t gangs = 0;
  for (const std::uint32_t i : who_) gangs += s_.running[i].gangs.size();
  victims.reserve(who_.size());
  held.reserve(gangs);
  for (const std::uint32_t i : who_) {
    const std::size_t first = held.size();
    for (const PlacedGang& gang : s_.running[i].gangs) {
      held.push_back({&gang.allocation, gang.host});
    }
    victims.push_back({std::span<const HeldGang>(held).subspan(first), from.cost(i), {}});
  }
  PreemptionAsk ask;
  ask.place = [&](const FleetView& view) -> std::optional<std::vector<PlacedGang>> {
    StartOrRefusal found = search_.in(view, job, {.freed_by = from.freed_by});
    if (!found) return std::nullopt;
    return std::move(found->gangs);
  };
  ask.object = from.object;
  ask.devices = devices_wanted(*job.request);
  ask.as_it_is = AsItIs::kDoesNotFit;
  ask.scratch = &scratch_;
  std::optional<PreemptionPlan> plan = plan_preemption(pass_.fleet.now(), victims, ask);
  if (!plan) return false;
  carry_out(job, *std::move(plan), from.freed_by);
  return true;
}

// The devices are kept for the job until all of its victims have left.
void DeviceTaking::carry_out(const WaitingJob& job, PreemptionPlan plan, FreedBy freed_by) {
  for (const UsageChange& change : changes_of(job, plan)) pass_.usage.apply(change);
  Reservation slot{job.id, s_.now, std::move(plan.gangs)};
  pass_.keep(slot);
  std::vector<PlacedGang> kept = slot.gangs;
  for (const Yield& one : plan.yields) {
    // A tenant at its limit preempts its own jobs as a whole.
    std::optional<PlacedGang> smaller;
    if (freed_by == FreedBy::kOthers) smaller = shrink(victim(one), job.id, kept);
    if (smaller) {
      pass_.set_decided(who_[one.victim]);
      kept.push_back(*std::move(smaller));
      continue;
    }
    slot.lost_device_seconds += lost_device_seconds(victim(one), s_.now);
    pass_.preempt(who_[one.victim], job.id);
  }
  pass_.fleet.edit_reserved().cover(std::span<const PlacedGang>(kept).subspan(slot.gangs.size()));
  for (const PlacedGang& gang : kept) pass_.fleet.keep_from_others(gang);
  if (Timeline* timeline = pass_.fleet.timeline()) {
    timeline->reserve({s_.now, slot.gangs}, Duration::max());
  }
  pass_.result.reservations.push_back(std::move(slot));
  pass_.pass_over(job.id);
}

// A victim that can go on with fewer devices does so at once, on the rest of its devices or
// elsewhere.
std::optional<PlacedGang> DeviceTaking::shrink(const RunningJob& job, JobId in_favour_of,
                                               std::span<const PlacedGang> kept) {
  pass_.power.leave(job);
  std::optional<PlannedStart> found = smaller_of(job, kept);
  if (!found) {
    pass_.power.enter(job);
    return std::nullopt;
  }
  PlacedGang smaller = found->gangs.front();
  pass_.power.enter(smaller, found->terms.front());
  const GangRequest& gang = request_of(*job.request, smaller);
  pass_.usage.apply({job.request->tenant, gang.type, rank_of(*job.request),
                     static_cast<std::int64_t>(gang.devices)});
  pass_.result.decisions.emplace_back(
      ResizeJob{job.id, std::move(found->gangs), std::move(found->terms), in_favour_of, 0,
                job.request->restart.count_seconds() * gang.devices});
  return smaller;
}

// Searches the job's own devices and free ones: other victims hold theirs until they have left.
std::optional<PlannedStart> DeviceTaking::smaller_of(const RunningJob& job,
                                                     std::span<const PlacedGang> kept) {
  if (job.gangs.size() != 1 || keeps_distance(*job.request)) return std::nullopt;
  const PlacedGang& old = job.gangs.front();
  const RoleRequest& role = job.request->roles[old.role];
  const GangRequest& has = role.options[old.option].gang;
  const auto is_less = [&has](const GangOption& option) {
    return option.gang.type == has.type && option.gang.devices < has.devices;
  };
  if (std::none_of(role.options.begin(), role.options.end(), is_less)) return std::nullopt;
  FleetOverlay mine(pass_.fleet.now());
  give_back(mine, std::span<const PlacedGang>(job.gangs));
  for (const PlacedGang& gang : kept) mine.hide(gang.allocation.ranks);
  hide_closed(mine, s_, job, Instant::max());
  const FleetView view = mine.view();
  for (std::uint32_t i = 0; i < role.options.size(); ++i) {
    const GangRequest& gang = role.options[i].gang;
    if (!is_less(role.options[i])) continue;
    AllocationOrRefusal placed = search_.gangs().place(view, gang);
    if (!placed) continue;
    StartOrRefusal found = search_.with_terms(
        view, as_waiting(job, s_.now), {PlacedGang{old.role, i, *std::move(placed), gang.host}});
    if (found) return *std::move(found);
  }
  return std::nullopt;
}

std::vector<UsageChange> DeviceTaking::changes_of(const WaitingJob& job,
                                                  const PreemptionPlan& plan) const {
  std::vector<UsageChange> changes;
  for (const PlacedGang& gang : plan.gangs) {
    const GangRequest& request = request_of(*job.request, gang);
    changes.push_back({job.request->tenant, request.type, rank_of(*job.request),
                       static_cast<std::int64_t>(request.devices)});
  }
  for (const Yield& one : plan.yields) {
    const RunningJob& running = victim(one);
    for (const PlacedGang& gang : running.gangs) {
      const GangRequest& request = request_of(*running.request, gang);
      changes.push_back({running.request->tenant, request.type, rank_of(*running.request),
                         -static_cast<std::int64_t>(request.devices)});
    }
  }
  return changes;
}

// The plan as a whole must be justified and raise the potential. The victim struck off is the first
// that would not be accepted alone, else the last.
std::optional<std::uint32_t> DeviceTaking::unjustified(const WaitingJob& job,
                                                       const PreemptionPlan& plan) const {
  if (policy_.quotas == Quotas::kIgnored || plan.yields.empty()) return std::nullopt;
  if (judge_preemption(pass_.usage.now(), changes_of(job, plan)) == PreemptionVerdict::kAccepted) {
    return std::nullopt;
  }
  for (const Yield& one : plan.yields) {
    const PreemptionPlan alone{{one}, plan.gangs, 0};
    if (judge_preemption(pass_.usage.now(), changes_of(job, alone)) !=
        PreemptionVerdict::kAccepted) {
      return one.victim;
    }
  }
  return plan.yields.back().victim;
}

// Jobs within their tenant's guarantee may use devices that are kept for others.
bool DeviceTaking::may_use_kept(const WaitingJob& job, const PlannedStart& found) {
  if (!pass_.fleet.reserved().any() || policy_.quotas != Quotas::kHeld) return true;
  return std::all_of(found.gangs.begin(), found.gangs.end(), [&](const PlacedGang& gang) {
    const GangRequest& request = request_of(*job.request, gang);
    return pass_.usage.now().entitled(job.request->tenant, request.type, request.devices);
  });
}

std::optional<bool> DeviceTaking::start_as_it_is(const WaitingJob& job) {
  StartOrRefusal found = search_.in(pass_.fleet.now(), job);
  if (!found) return std::nullopt;
  if (!may_use_kept(job, *found)) return false;
  pass_.start(job, *std::move(found));
  return true;
}

std::int64_t DeviceTaking::lost_device_milliseconds(std::uint32_t running) const {
  return static_cast<std::int64_t>(
      std::llround(lost_device_seconds(s_.running[running], s_.now) * 1000));
}

}  // namespace orrery
