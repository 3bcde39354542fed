// Which running jobs are preempted for which waiting job: the rules of a pass around
// scheduler/preempt/preemption.hpp.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "scheduler/forecast/guaranteed_potential.hpp"
#include "scheduler/pass/pass.hpp"
#include "scheduler/price/run_time.hpp"
#include "scheduler/tenants/queue_order.hpp"
#include "scheduler/tenants/slack.hpp"

namespace orrery {
// Whether a job is one gang of whole devices, by each of its options.
bool Pass::asks_by_number(const JobRequest& job) {
  if (gangs_of(job) != 1) return false;
  const std::vector<GangOption>& options = job.roles.front().options;
  return std::all_of(options.begin(), options.end(), [](const GangOption& option) {
    return !option.plan && option.gang.share == kWholeDevice;
  });
}

// A job that may be stopped still holds all it asked for, so no device is counted.
double Pass::lost_device_seconds(const RunningJob& job) const {
  const double each = job.at_risk(s_.now).count_seconds() + job.request->restart.count_seconds() +
                      job.request->checkpoint_cost.count_seconds();
  std::uint32_t devices = 0;
  for (const PlacedGang& gang : job.gangs) devices += request_of(*job.request, gang).devices;
  return each * devices;
}

// A job may take from lower ranks of its own tenant; from another tenant it may take what is above
// that tenant's guarantees, by its own right or else from lower ranks. object() judges the whole
// plan.
bool Pass::may_yield(const WaitingJob& job, const RunningJob& running, std::span<Claim> claims) {
  const JobRequest& mine = *job.request;
  const JobRequest& theirs = *running.request;
  if (running.stopping || !theirs.preemptible) return false;
  const bool higher = rank_of(mine) > rank_of(theirs);
  const Instant settled = running.started + Duration::from_seconds(policy_.min_run.value());
  if (!higher && s_.now < settled) {
    hold_until(settled);
    return false;
  }
  if (theirs.tenant == mine.tenant) {
    return higher && rank_in_tenant(mine, policy_) > rank_in_tenant(theirs, policy_);
  }
  for (const PlacedGang& gang : running.gangs) {
    const FleetTypeId type = request_of(theirs, gang).type;
    Claim& claim = claims[theirs.tenant.value() * s_.fleet.topology().type_count() + type.value()];
    if (claim == Claim::kNotAsked) {
      const bool lent = usage().above_guarantee(theirs.tenant, type, mine.tenant) > 0;
      const bool right = lent && usage().entitled(mine.tenant, type, 1, theirs.tenant);
      claim = right ? Claim::kRight : lent ? Claim::kByRank : Claim::kNone;
    }
    if (claim == Claim::kNone || (claim == Claim::kByRank && !higher)) return false;
  }
  return true;
}

Yielders& Pass::yielders() {
  if (!looked_for_yielders_) m_.yielders_.look(s_, policy_);
  looked_for_yielders_ = true;
  return m_.yielders_;
}

// Whether no preemptible job of a tenant may be preempted; `lowest` is the lowest rank among them.
bool Pass::nobody_may_yield(const JobRequest& mine, TenantId theirs, std::int32_t lowest) const {
  const bool higher = rank_of(mine) > lowest;
  if (theirs == mine.tenant) return !higher;
  const std::uint32_t types = s_.fleet.topology().type_count();
  for (std::uint32_t t = 0; t < types; ++t) {
    const FleetTypeId type(t);
    if (usage().above_guarantee(theirs, type, mine.tenant) <= 0) continue;
    if (higher || usage().entitled(mine.tenant, type, 1, theirs)) return false;
  }
  return true;
}

std::vector<std::uint32_t> Pass::who_may_yield(const WaitingJob& job) {
  const Yielders& running = yielders();
  // Jobs that have not run for `min_run` limit how long the pass holds, if it may hold at all.
  const bool says_nothing = result_.holds_until <= s_.now;
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
    if (stopped_[i] == 0 && may_yield(job, s_.running[i], claims)) who.push_back(i);
  });
  return who;
}

// If one gang finds no room by free counts and nodes, it finds none when fewer jobs leave.
bool Pass::no_room_without(Leavers& leavers, const WaitingJob& job) {
  if (gangs_of(*job.request) != 1) return false;
  for (const GangOption& option : job.request->roles.front().options) {
    if (option.gang.asks_slice() || option.gang.share != kWholeDevice) return false;
  }
  if (leavers.devices.empty()) leavers.devices = devices_of(leavers.who);
  if (!enough_with(leavers.devices, *job.request)) return true;
  return !fits_without(leavers, job);
}

// The fleet without the leavers is built once for each list of jobs.
bool Pass::fits_without(const Leavers& leavers, const WaitingJob& job) {
  if (left_out_ != &leavers || left_out_under_ != leavers.under) {
    if (!m_.without_) m_.without_.emplace(m_.now_->view());
    m_.without_->reset(m_.now_->view());
    for (const std::uint32_t i : leavers.who) {
      give_back(*m_.without_, std::span<const PlacedGang>(s_.running[i].gangs));
    }
    left_out_ = &leavers;
    left_out_under_ = leavers.under;
  }
  JobPlaceRules rules = rules_for(job);
  rules.may_take = nullptr;
  return m_.placer_.fits(m_.without_->view(), *job.request, rules);
}

bool Pass::preempt_for(const QueuedJob& queued, const Refusal& refusal) {
  const bool room_helps =
      refusal.kind == RejectionKind::kBusy || refusal.kind == RejectionKind::kPower;
  if (!room_helps || preemptions_ >= kVainPreemptions) return false;
  // The jobs that may be preempted depend on the tenant, the rank and the usage, so they are listed
  // once for each.
  const WaitingJob& job = job_of(queued);
  Leavers& leavers = askers_[queued.asker].by_right;
  if (leavers.under != usage_changes_) leavers = {usage_changes_, who_may_yield(job), false, {}};
  if (leavers.who.empty()) return false;
  hold_until(s_.now);  // work at risk grows
  if (leavers.in_vain && no_room_without(leavers, job)) {
    ++preemptions_;
    return false;
  }
  const std::uint32_t tried = preemptions_;
  const bool made_room = preempt(
      job, leavers.who, [&](std::uint32_t i) { return lost_device_milliseconds(i); },
      [&](const PreemptionPlan& plan) { return object(job, plan); });
  leavers.in_vain = preemptions_ > tried;
  return made_room;
}

std::int64_t Pass::lost_device_milliseconds(std::uint32_t running) const {
  return static_cast<std::int64_t>(std::llround(lost_device_seconds(s_.running[running]) * 1000));
}

// An elastic job keeps devices beyond its smallest size only until a job of its rank or a higher
// one waits for them.
bool Pass::take_surplus(const QueuedJob& queued, const Refusal& refusal) {
  const bool helps =
      policy_.choice == OptionChoice::kCheapest && refusal.kind == RejectionKind::kBusy;
  if (!helps || preemptions_ >= kVainPreemptions) return false;
  if (askers_[queued.asker].no_surplus == usage_changes_) return false;
  const WaitingJob& job = job_of(queued);
  std::vector<std::uint32_t> who;
  yielders().each_elastic([&](std::uint32_t i) {
    if (stopped_[i] == 0 && has_surplus_for(job, s_.running[i])) who.push_back(i);
  });
  const bool made_room = preempt(
      job, who, [&](std::uint32_t i) { return lost_device_milliseconds(i); },
      [&](const PreemptionPlan& plan) { return object_to_shrinking(job, plan); });
  if (yielding_.empty()) {
    askers_[queued.asker].no_surplus = usage_changes_;
  } else {
    hold_until(s_.now);
  }
  return made_room;
}

bool Pass::has_surplus_for(const WaitingJob& job, const RunningJob& running) {
  const JobRequest& mine = *job.request;
  const JobRequest& theirs = *running.request;
  if (rank_of(mine) < rank_of(theirs)) return false;
  const GangRequest& has = request_of(theirs, running.gangs.front());
  const Instant settled = running.started + Duration::from_seconds(policy_.min_run.value());
  if (s_.now < settled && rank_of(mine) == rank_of(theirs)) {
    hold_until(settled);
    return false;
  }
  return policy_.quotas == Quotas::kIgnored || theirs.tenant == mine.tenant ||
         usage().above_guarantee(theirs.tenant, has.type, mine.tenant) > 0;
}

// Returns the first victim that would have to stop, or whose tenant would fall below its
// guarantees.
std::optional<std::uint32_t> Pass::object_to_shrinking(const WaitingJob& job,
                                                       const PreemptionPlan& plan) const {
  std::vector<PlacedGang> kept = plan.gangs;
  std::vector<UsageChange> changes = changes_of(job, {{}, plan.gangs, 0});
  for (const Yield& one : plan.yields) {
    const RunningJob& running = s_.running[yielding_[one.victim]];
    const std::optional<Found> smaller = smaller_of(running, kept);
    if (!smaller) return one.victim;
    kept.push_back(smaller->gangs.front());
    const JobRequest& theirs = *running.request;
    const GangRequest& has = request_of(theirs, running.gangs.front());
    const GangRequest& keeps = request_of(theirs, kept.back());
    changes.push_back({theirs.tenant, has.type, rank_of(theirs),
                       std::int64_t{keeps.devices} - std::int64_t{has.devices}});
    const bool held = policy_.quotas == Quotas::kHeld;
    if (held && breaks_guarantee(usage(), changes)) return one.victim;
  }
  return std::nullopt;
}

std::vector<std::uint32_t> Pass::devices_of(std::span<const std::uint32_t> from) const {
  const Topology& topology = s_.fleet.topology();
  std::vector<std::uint32_t> devices(topology.type_count());
  for (const std::uint32_t i : from) {
    for (const PlacedGang& gang : s_.running[i].gangs) {
      for (const auto* at : {&gang.allocation.ranks, &gang.allocation.idle}) {
        for (const NodeDevices& part : *at) {
          devices[topology.group(part.node).type.value()] +=
              static_cast<std::uint32_t>(std::popcount(part.devices));
        }
      }
    }
  }
  return devices;
}

// Whether a gang may find enough devices when `devices` come free, by number alone.
bool Pass::enough_with(std::span<const std::uint32_t> devices, const JobRequest& job) const {
  if (!asks_by_number(job)) return true;
  const std::vector<GangOption>& options = job.roles.front().options;
  const FleetView now = m_.now_->view();
  return std::any_of(options.begin(), options.end(), [&](const GangOption& option) {
    const FleetTypeId type = option.gang.type;
    return now.free(Topology::root(), type).devices + devices[type.value()] >= option.gang.devices;
  });
}

// Jobs within their tenant's guarantee may use devices kept in slots.
bool Pass::may_use_kept(const WaitingJob& job, const Found& found) const {
  if (!m_.reserved_->any() || policy_.quotas != Quotas::kHeld) return true;
  return std::all_of(found.gangs.begin(), found.gangs.end(), [&](const PlacedGang& gang) {
    const GangRequest& request = request_of(*job.request, gang);
    return usage().entitled(job.request->tenant, request.type, request.devices);
  });
}

std::optional<bool> Pass::start_as_it_is(const WaitingJob& job) {
  FoundOrRefusal found = find_in(m_.now_->view(), job);
  if (!found) return std::nullopt;
  if (!may_use_kept(job, *found)) return false;
  start(job, *std::move(found));
  return true;
}

bool Pass::preempt(const WaitingJob& job, std::span<const std::uint32_t> from, const CostOf& cost,
                   const Objection& objection) {
  yielding_.assign(from.begin(), from.end());
  if (from.empty()) return false;
  if (!enough_with(devices_of(from), *job.request)) {
    ++preemptions_;
    return false;
  }
  if (const std::optional<bool> started = start_as_it_is(job)) return *started;
  if (take_from(job, from, cost, objection)) return true;
  ++preemptions_;
  return false;
}

bool Pass::take_from(const WaitingJob& job, std::span<const std::uint32_t> from, const CostOf& cost,
                     const Objection& objection) {
  yielding_.assign(from.begin(), from.end());
  std::vector<Victim> victims;
  std::vector<HeldGang> held;
  std::size_t gangs = 0;
  for (const std::uint32_t i : from) gangs += s_.running[i].gangs.size();
  victims.reserve(from.size());
  held.reserve(gangs);
  for (const std::uint32_t i : from) {
    const std::size_t first = held.size();
    for (const PlacedGang& gang : s_.running[i].gangs) {
      held.push_back({&gang.allocation, gang.host});
    }
    victims.push_back({std::span<const HeldGang>(held).subspan(first), cost(i), {}});
  }
  PreemptionAsk ask;
  ask.place = [&](const FleetView& view) -> std::optional<std::vector<PlacedGang>> {
    left_ = own_leave_ ? &view : nullptr;
    FoundOrRefusal found = find_in(view, job);
    left_ = nullptr;
    if (!found) return std::nullopt;
    return std::move(found->gangs);
  };
  ask.object = objection;
  ask.devices = devices_wanted(*job.request);
  ask.as_it_is = AsItIs::kDoesNotFit;
  ask.scratch = &m_.preemption_;
  std::optional<PreemptionPlan> plan = plan_preemption(m_.now_->view(), victims, ask);
  if (!plan) return false;
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

// The plan as a whole must be justified and raise the potential. The victim struck off is the first
// that would not be accepted alone, else the last.
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
  std::vector<PlacedGang> kept = slot.gangs;
  for (const Yield& one : plan.yields) {
    const std::uint32_t i = yielding_[one.victim];
    stopped_[i] = 1;
    // A tenant at its limit preempts its own jobs as a whole.
    std::optional<PlacedGang> smaller;
    if (!own_leave_) smaller = shrink(s_.running[i], job.id, kept);
    if (smaller) {
      kept.push_back(*std::move(smaller));
      continue;
    }
    const double lost = lost_device_seconds(s_.running[i]);
    slot.lost_device_seconds += lost;
    result_.decisions.emplace_back(PreemptJob{s_.running[i].id, job.id, lost});
  }
  edit_reserved().cover(std::span<const PlacedGang>(kept).subspan(slot.gangs.size()));
  for (const PlacedGang& gang : kept) keep_from_others(gang);
  if (timeline_open_) m_.timeline_.reserve({s_.now, slot.gangs}, Duration::max());
  result_.reservations.push_back(std::move(slot));
  hold(job.id);
}

std::vector<Pass::Entry> Pass::everybody() const {
  std::vector<Entry> entries;
  entries.reserve(s_.waiting.size() + s_.running.size());
  for (std::uint32_t i = 0; i < s_.waiting.size(); ++i) {
    entries.push_back({key_of(s_.waiting[i], policy_, s_), i, false});
  }
  for (std::uint32_t i = 0; i < s_.running.size(); ++i) {
    entries.push_back({key_of(as_waiting(s_.running[i], s_.now), policy_, s_), i, true});
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.key < b.key; });
  return entries;
}

// Plans as if no job ran: each job in the order gets the place it would get then. A running job
// that gets another place or none leaves first; waiting jobs start once these have left.
void Pass::replan_all() {
  const bool leaving = std::any_of(s_.running.begin(), s_.running.end(),
                                   [](const RunningJob& job) { return job.stopping; });
  if (leaving) return;
  for (const RunningJob& job : s_.running) {
    give_back(edit_now(), std::span<const PlacedGang>(job.gangs));
    count(*job.request, job.gangs, Held::kLess);
  }
  std::vector<std::pair<const WaitingJob*, Found>> starts;
  for (const Entry& entry : everybody()) {
    const WaitingJob job =
        entry.running ? as_waiting(s_.running[entry.at], s_.now) : s_.waiting[entry.at];
    ++result_.placements;
    FoundOrRefusal found = by_fit(m_.now_->view(), job);
    if (found) {
      take(edit_now(), std::span<const PlacedGang>(found->gangs));
      count(*job.request, found->gangs, Held::kMore);
    }
    if (entry.running) {
      const std::vector<PlacedGang>& has = s_.running[entry.at].gangs;
      const bool stays =
          found && std::equal(has.begin(), has.end(), found->gangs.begin(), found->gangs.end(),
                              [](const PlacedGang& a, const PlacedGang& b) {
                                return a.allocation == b.allocation;
                              });
      if (!stays) result_.decisions.emplace_back(PreemptJob{job.id, job.id, 0});
    } else if (found) {
      starts.emplace_back(&s_.waiting[entry.at], *std::move(found));
    } else {
      wait(s_.waiting[entry.at], found.error());
      if (policy_.blocked == Blocked::kStops) break;
    }
  }
  const bool room_first = !result_.decisions.empty();
  for (auto& [job, found] : starts) {
    if (room_first) {
      wait(*job, {RejectionKind::kBusy, TopologyLevel::kFleet, 0});
    } else {
      result_.decisions.emplace_back(StartJob{job->id, std::move(found.gangs),
                                              std::move(found.terms), found.length, Duration(),
                                              found.price});
    }
  }
}

// Waiting and running jobs are in one order: a waiting job may preempt jobs that come behind it,
// the last first.
void Pass::run_by_order() {
  open_queue();
  const std::vector<std::uint32_t> places = m_.queue_.places();
  const std::vector<Entry> entries = everybody();
  std::vector<std::uint32_t> position(s_.running.size());
  for (std::uint32_t i = 0; i < entries.size(); ++i) {
    if (entries[i].running) position[entries[i].at] = i;
  }
  for (std::uint32_t i = 0; i < entries.size(); ++i) {
    if (entries[i].running) continue;
    const std::size_t waited = result_.waiting.size();
    if (consider(m_.queue_.order()[places[entries[i].at]]) == Queue::kStops) return;
    if (result_.waiting.size() == waited || preemptions_ >= kVainPreemptions) continue;
    const WaitingJob& job = s_.waiting[entries[i].at];
    std::vector<std::uint32_t> who;
    for (std::uint32_t r = 0; r < s_.running.size(); ++r) {
      const bool ran =
          s_.now - s_.running[r].started >= Duration::from_seconds(policy_.min_run.value());
      const bool may = position[r] > i && !s_.running[r].stopping && stopped_[r] == 0 && ran;
      if (may) who.push_back(r);
    }
    const bool made_room = preempt(
        job, who,
        [&](std::uint32_t r) {
          return static_cast<std::int64_t>(entries.size() - position[r]) * s_.running[r].devices();
        },
        [&](const PreemptionPlan& plan) { return object(job, plan); });
    if (made_room) result_.waiting.pop_back();
  }
}

}  // namespace orrery
