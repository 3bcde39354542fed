// Who yields to whom: the rules of a pass around scheduler/preemption.hpp.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "scheduler/guaranteed_potential.hpp"
#include "scheduler/pass.hpp"
#include "scheduler/queue_order.hpp"
#include "scheduler/run_time.hpp"
#include "scheduler/slack.hpp"

namespace orrery {
namespace {

/// Searches in vain a pass makes: each looks at every running job.
constexpr std::uint32_t kVainPreemptions = 32;

const GangRequest& request_of(const JobRequest& job, const PlacedGang& gang) {
  return job.roles[gang.role].options[gang.option].gang;
}

}  // namespace

// Nothing of who may be stopped has left yet, so it holds what it asked for: no device is counted.
double Pass::lost_device_seconds(const RunningJob& job) const {
  const double each = job.at_risk(s_.now).count_seconds() + job.request->restart.count_seconds() +
                      job.request->checkpoint_cost.count_seconds();
  std::uint32_t devices = 0;
  for (const PlacedGang& gang : job.gangs) devices += request_of(*job.request, gang).devices;
  return each * devices;
}

// Within its tenant a job may take from lower ranks; from another tenant what is above its
// guarantees, as its own right or, beyond that, from lower ranks. What the whole plan comes to is
// judged in object().
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

// Of a tenant whose preemptible jobs have no lower rank than this.
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
  const std::span<const std::int32_t> lowest = yielders().lowest_ranks();
  // Who has not run for `min_run` says how long the pass holds, if it may hold at all.
  const bool says_nothing = result_.holds_until <= s_.now;
  std::vector<char> may(lowest.size());
  for (std::uint32_t t = 0; t < lowest.size(); ++t) {
    if (lowest[t] == Yielders::kNobody) continue;
    may[t] = says_nothing && nobody_may_yield(*job.request, TenantId(t), lowest[t]) ? 0 : 1;
  }
  std::vector<std::uint32_t> who;
  if (std::find(may.begin(), may.end(), 1) == may.end()) return who;
  std::vector<Claim> claims(lowest.size() * s_.fleet.topology().type_count());
  yielders().each_preemptible(may, [&](std::uint32_t i) {
    if (stopped_[i] == 0 && may_yield(job, s_.running[i], claims)) who.push_back(i);
  });
  return who;
}

// What free counts and nodes tell of one gang holds of any fewer who leave, too.
bool Pass::no_room_without(const Leavers& leavers, const WaitingJob& job) {
  if (gangs_of(*job.request) != 1) return false;
  for (const GangOption& option : job.request->roles.front().options) {
    if (option.gang.asks_slice() || option.gang.share != kWholeDevice) return false;
  }
  if (!enough_with(leavers.who, *job.request)) return true;
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
  return !m_.placer_.fits(m_.without_->view(), *job.request, rules);
}

bool Pass::preempt_for(const QueuedJob& queued, const Refusal& refusal) {
  const bool room_helps =
      refusal.kind == RejectionKind::kBusy || refusal.kind == RejectionKind::kPower;
  if (!room_helps || preemptions_ >= kVainPreemptions) return false;
  // Who may yield rests on the tenant, the rank and what everybody holds: asked once for each.
  const WaitingJob& job = job_of(queued);
  Leavers& leavers = askers_[queued.asker].by_right;
  if (leavers.under != usage_changes_) leavers = {usage_changes_, who_may_yield(job), false};
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

// What those who are overtaken lose is bounded by `yield_ratio` and `min_run`; who has most left,
// and so gives way to most others, is the first of them.
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
  Leavers& leavers = askers_[queued.asker].overtaken;
  if (leavers.in_vain && leavers.under == usage_changes_ && no_room_without(leavers, job)) {
    ++overtakes_;
    return false;
  }
  if (const std::optional<bool> started = start_as_it_is(job)) return *started;
  // What others leave is no room within the limits of its tenant.
  own_leave_ = refusal.kind == RejectionKind::kQuota || !may_take_any(queued);
  const std::vector<std::uint32_t> who = who_is_overtaken(job, least, pressed);
  const bool made_room =
      !who.empty() && enough_with(who, *job.request) && overtake_some_of(job, who);
  own_leave_ = false;
  if (who.empty() || made_room) return made_room;
  note_in_vain(queued);
  ++overtakes_;
  return false;
}

// Of its tenant who is pressed by a deadline passes everybody without one.
std::vector<std::uint32_t> Pass::who_is_overtaken(const WaitingJob& job, double least,
                                                  Pressed pressed) {
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

// Whether it has to start now to be in time.
bool Pass::is_overdue(const WaitingJob& job) const {
  if (policy_.inside != TenantOrder::kService) return false;
  const std::optional<Slack> slack = slack_of(job, policy_, s_);
  return slack && slack->kept() && slack->spare() <= Duration();
}

// Whether it would start too late after the longest run that waits in its tenant.
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

// Whether a running job keeps its deadline, and not if it waits until another is done.
bool Pass::would_be_late(const RunningJob& running, const WaitingJob& other) const {
  if (!running.request->deadline) return false;
  const std::optional<Slack> slack = slack_if_stopped(running, policy_, s_);
  const Duration unknown = Duration::from_seconds(policy_.unknown_run.value());
  return slack && slack->kept() && slack->spare() < time_left(other, s_.plans, unknown);
}

// From the second search on, a job that finds no room without all it may overtake is left out.
void Pass::note_in_vain(const QueuedJob& queued) {
  Leavers& leavers = askers_[queued.asker].overtaken;
  if (leavers.in_vain && leavers.under == usage_changes_) return;
  leavers = {usage_changes_, {}, true};
  const JobRequest& mine = *job_of(queued).request;
  yielders().each_settled(0, [&](const Yielders::Settled& other) {
    if (may_be_overtaken(mine, other.at)) leavers.who.push_back(other.at);
    return 0.0;
  });
}

// Of those that are settled (Yielders).
bool Pass::may_be_overtaken(const JobRequest& mine, std::uint32_t running) const {
  if (stopped_[running] != 0) return false;
  const RunningJob& other = s_.running[running];
  const bool own = other.request->tenant == mine.tenant;
  const bool equal = own ? rank_in_tenant(*other.request, policy_) == rank_in_tenant(mine, policy_)
                         : rank_of(*other.request) == rank_of(mine);
  return equal && (own || is_lent(other, mine.tenant));
}

// Whether a job holds what its tenant borrows while that tenant has more for its weight than
// another.
bool Pass::is_lent(const RunningJob& job, TenantId claimant) const {
  return std::all_of(job.gangs.begin(), job.gangs.end(), [&](const PlacedGang& gang) {
    const FleetTypeId type = request_of(*job.request, gang).type;
    return usage().above_guarantee(job.request->tenant, type, claimant) > 0 &&
           usage().share(job.request->tenant, claimant, type) >
               usage().share(claimant, job.request->tenant, type);
  });
}

// Of those whom a job of the same tenant and rank may overtake; 0: nobody.
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

// What a tenant takes from itself it may take as long as it keeps its limits.
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
  // Nor may it come to more for its weight than another tenant had.
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

// What an elastic job holds beyond its least it has for as long as nobody of its rank waits for it.
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

// The first who would have to stop, or whose tenant has less above its guarantees than it gives.
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

// Whether a gang may find enough devices when all of those have left, by number alone.
bool Pass::enough_with(std::span<const std::uint32_t> from, const JobRequest& job) const {
  if (gangs_of(job) != 1) return true;
  const std::vector<GangOption>& options = job.roles.front().options;
  const auto counts = [](const GangOption& option) {
    return !option.plan && option.gang.share == kWholeDevice;
  };
  if (!std::all_of(options.begin(), options.end(), counts)) return true;
  const Topology& topology = s_.fleet.topology();
  std::vector<std::uint32_t> left(topology.type_count());
  for (const std::uint32_t i : from) {
    for (const PlacedGang& gang : s_.running[i].gangs) {
      for (const auto* at : {&gang.allocation.ranks, &gang.allocation.idle}) {
        for (const NodeDevices& part : *at) {
          left[topology.group(part.node).type.value()] +=
              static_cast<std::uint32_t>(std::popcount(part.devices));
        }
      }
    }
  }
  const FleetView now = m_.now_->view();
  return std::any_of(options.begin(), options.end(), [&](const GangOption& option) {
    const FleetTypeId type = option.gang.type;
    return now.free(Topology::root(), type).devices + left[type.value()] >= option.gang.devices;
  });
}

// What is free as it is may be kept for others: a guarantee goes before their slots.
std::optional<bool> Pass::start_as_it_is(const WaitingJob& job) {
  FoundOrRefusal found = find_in(m_.now_->view(), job);
  if (!found) return std::nullopt;
  const bool kept = m_.reserved_->any() && policy_.quotas == Quotas::kHeld;
  for (const PlacedGang& gang : found->gangs) {
    const GangRequest& request = request_of(*job.request, gang);
    if (kept && !usage().entitled(job.request->tenant, request.type, request.devices)) return false;
  }
  start(job, *std::move(found));
  return true;
}

bool Pass::preempt(const WaitingJob& job, std::span<const std::uint32_t> from, const CostOf& cost,
                   const Objection& objection) {
  yielding_.assign(from.begin(), from.end());
  if (from.empty()) return false;
  if (!enough_with(from, *job.request)) {
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
  std::vector<PlacedGang> kept = slot.gangs;
  for (const Yield& one : plan.yields) {
    const std::uint32_t i = yielding_[one.victim];
    stopped_[i] = 1;
    // What a tenant at its limit takes from itself is all of the victim.
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

// As if nobody ran: each in the order gets the place it would have got then. Who runs and has
// another place or none leaves first, and those that waited start once they have left.
void Pass::run_anew() {
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

// Everybody in one order: a waiting job may push out whoever comes behind it, the last first.
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
