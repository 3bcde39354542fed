// Who yields to whom: the rules of a pass around scheduler/preemption.hpp.
#include <algorithm>
#include <cmath>

#include "scheduler/guaranteed_potential.hpp"
#include "scheduler/pass.hpp"
#include "scheduler/queue_order.hpp"
#include "scheduler/run_time.hpp"

namespace orrery {
namespace {

/// Searches in vain a pass makes: each looks at every running job.
constexpr std::uint32_t kVainPreemptions = 32;

const GangRequest& request_of(const JobRequest& job, const PlacedGang& gang) {
  return job.roles[gang.role].options[gang.option].gang;
}

}  // namespace

double Pass::lost_device_seconds(const RunningJob& job) const {
  const double each = job.at_risk(s_.now).count_seconds() + job.request->restart.count_seconds() +
                      job.request->checkpoint_cost.count_seconds();
  return each * job.devices();
}

// Within its tenant a job may take from lower ranks; from another tenant what is above its
// guarantees, as its own right or, beyond that, from lower ranks. What the whole plan comes to is
// judged in object().
bool Pass::may_yield(const WaitingJob& job, const RunningJob& running) const {
  const JobRequest& mine = *job.request;
  const JobRequest& theirs = *running.request;
  if (running.stopping || !theirs.preemptible) return false;
  const bool higher = rank_of(mine) > rank_of(theirs);
  const Duration ran = s_.now - running.started;
  if (!higher && ran < Duration::from_seconds(policy_.min_run.value())) return false;
  if (theirs.tenant == mine.tenant) return higher;
  for (const PlacedGang& gang : running.gangs) {
    const FleetTypeId type = request_of(theirs, gang).type;
    if (usage().above_guarantee(theirs.tenant, type, mine.tenant) <= 0) return false;
    const bool right = usage().entitled(mine.tenant, type, 1, theirs.tenant);
    if (!right && !higher) return false;
  }
  return true;
}

bool Pass::preempt_for(const WaitingJob& job, const Refusal& refusal) {
  const bool room_helps =
      refusal.kind == RejectionKind::kBusy || refusal.kind == RejectionKind::kPower;
  if (!room_helps || preemptions_ >= kVainPreemptions) return false;
  // Who may yield rests on the tenant, the rank and what everybody holds: asked once for each.
  const std::pair<TenantId, std::int32_t> asks(job.request->tenant, rank_of(*job.request));
  const auto known = nobody_yields_.find(asks);
  if (known != nobody_yields_.end() && known->second == usage_changes_) return false;
  const bool made_room = preempt(
      job, [&](std::uint32_t i) { return may_yield(job, s_.running[i]); },
      [&](std::uint32_t i) {
        return static_cast<std::int64_t>(std::llround(lost_device_seconds(s_.running[i]) * 1000));
      });
  if (yielding_.empty()) nobody_yields_[asks] = usage_changes_;
  return made_room;
}

bool Pass::preempt(const WaitingJob& job, const MayYield& may, const CostOf& cost) {
  std::vector<Victim> victims;
  std::vector<std::vector<HeldGang>> held;
  yielding_.clear();
  for (std::uint32_t i = 0; i < s_.running.size(); ++i) {
    if (stopped_[i] != 0 || !may(i)) continue;
    yielding_.push_back(i);
    std::vector<HeldGang>& gangs = held.emplace_back();
    for (const PlacedGang& gang : s_.running[i].gangs) {
      gangs.push_back({&gang.allocation, gang.host});
    }
    victims.push_back({gangs, cost(i), {}});
  }
  if (victims.empty()) return false;
  PreemptionAsk ask;
  ask.place = [&](const FleetView& view) -> std::optional<std::vector<PlacedGang>> {
    FoundOrRefusal found = find_in(view, job);
    if (!found) return std::nullopt;
    return std::move(found->gangs);
  };
  ask.object = [&](const PreemptionPlan& plan) { return object(job, plan); };
  ask.devices = devices_wanted(*job.request);
  std::optional<PreemptionPlan> plan = plan_preemption(m_.now_->view(), victims, ask);
  if (!plan) {
    ++preemptions_;
    return false;
  }
  yield(job, *std::move(plan));
  return true;
}

std::vector<UsageChange> Pass::changes_of(const WaitingJob& job, const PreemptionPlan& plan) const {
  std::vector<UsageChange> changes;
  for (const PlacedGang& gang : plan.gangs) {
    const GangRequest& request = request_of(*job.request, gang);
    changes.push_back({job.request->tenant, request.type, rank_of(*job.request),
                       static_cast<std::int64_t>(request.devices)});
  }
  for (const Yield& one : plan.yields) {
    const RunningJob& running = s_.running[yielding_[one.victim]];
    for (const PlacedGang& gang : running.gangs) {
      const GangRequest& request = request_of(*running.request, gang);
      changes.push_back({running.request->tenant, request.type, rank_of(*running.request),
                         -static_cast<std::int64_t>(request.devices)});
    }
  }
  return changes;
}

// The plan as a whole must be due and raise the potential. The victim struck off is the first that
// would not be due alone, else the last.
std::optional<std::uint32_t> Pass::object(const WaitingJob& job, const PreemptionPlan& plan) const {
  if (policy_.quotas == Quotas::kIgnored || plan.yields.empty()) return std::nullopt;
  if (judge_preemption(usage(), changes_of(job, plan)) == PreemptionVerdict::kAccepted) {
    return std::nullopt;
  }
  for (const Yield& one : plan.yields) {
    const PreemptionPlan alone{{one}, plan.gangs, 0};
    if (judge_preemption(usage(), changes_of(job, alone)) != PreemptionVerdict::kAccepted) {
      return one.victim;
    }
  }
  return plan.yields.back().victim;
}

// The devices are kept for the job until all of its victims have left.
void Pass::yield(const WaitingJob& job, PreemptionPlan plan) {
  for (const UsageChange& change : changes_of(job, plan)) apply(change);
  Reservation slot{job.id, s_.now, std::move(plan.gangs)};
  keep(slot);
  FleetOverlay after(m_.now_->view());
  for (const Yield& one : plan.yields) {
    give_back(after, std::span<const PlacedGang>(s_.running[yielding_[one.victim]].gangs));
  }
  take(after, std::span<const PlacedGang>(slot.gangs));
  std::vector<PlacedGang> kept;
  for (const Yield& one : plan.yields) {
    const std::uint32_t i = yielding_[one.victim];
    stopped_[i] = 1;
    if (std::optional<PlacedGang> smaller = shrink(s_.running[i], job.id, after)) {
      kept.push_back(*std::move(smaller));
      continue;
    }
    const double lost = lost_device_seconds(s_.running[i]);
    slot.lost_device_seconds += lost;
    result_.decisions.emplace_back(PreemptJob{s_.running[i].id, job.id, lost});
  }
  m_.reserved_->cover(kept);
  kept.insert(kept.end(), slot.gangs.begin(), slot.gangs.end());
  for (const PlacedGang& gang : kept) keep_from_others(gang);
  if (timeline_open_) m_.timeline_.reserve({s_.now, slot.gangs}, Duration::max());
  result_.reservations.push_back(std::move(slot));
  hold(job.id);
}

// Everybody in one order: a waiting job may push out whoever comes behind it, the last first.
void Pass::run_by_order() {
  struct Entry {
    OrderKey key;
    std::uint32_t at = 0;
    bool running = false;
  };
  std::vector<Entry> entries;
  entries.reserve(s_.waiting.size() + s_.running.size());
  for (std::uint32_t i = 0; i < s_.waiting.size(); ++i) {
    entries.push_back({key_of(s_.waiting[i], policy_, s_.plans), i, false});
  }
  for (std::uint32_t i = 0; i < s_.running.size(); ++i) {
    entries.push_back({key_of(as_waiting(s_.running[i], s_.now), policy_, s_.plans), i, true});
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.key < b.key; });
  std::vector<std::uint32_t> position(s_.running.size());
  for (std::uint32_t i = 0; i < entries.size(); ++i) {
    if (entries[i].running) position[entries[i].at] = i;
  }
  for (std::uint32_t i = 0; i < entries.size(); ++i) {
    if (entries[i].running) continue;
    const WaitingJob& job = s_.waiting[entries[i].at];
    const std::size_t waited = result_.waiting.size();
    if (consider(job) == Queue::kStops) return;
    if (result_.waiting.size() == waited || preemptions_ >= kVainPreemptions) continue;
    const bool made_room = preempt(
        job,
        [&](std::uint32_t r) {
          const Duration ran = s_.now - s_.running[r].started;
          return position[r] > i && !s_.running[r].stopping &&
                 ran >= Duration::from_seconds(policy_.min_run.value());
        },
        [&](std::uint32_t r) {
          return static_cast<std::int64_t>(entries.size() - position[r]) * s_.running[r].devices();
        });
    if (made_room) result_.waiting.pop_back();
  }
}

}  // namespace orrery
