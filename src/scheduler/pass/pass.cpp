#include "scheduler/pass/pass.hpp"

#include <algorithm>
#include <set>

#include "scheduler/power/gang_power.hpp"
#include "scheduler/price/run_time.hpp"
#include "scheduler/request/job_array.hpp"
#include "scheduler/tenants/fair_order.hpp"
#include "scheduler/tenants/queue_order.hpp"

namespace orrery {
namespace {

/// The vain searches that a pass makes beside the slots that matter to a job. Later jobs are placed
/// where they fit best, and wait if they meet a slot there.
constexpr std::uint32_t kVainViews = 16;
/// The most jobs behind one that stops the queue that are checked for room.
constexpr std::size_t kHeldBackAsked = 1000;

}  // namespace

PassMemory::PassMemory(const PlaceTree& tree) : placer_(tree), priced_(tree) {}

Pass::Pass(const Situation& situation, const Policy& policy, PassMemory& memory)
    : s_(situation), policy_(policy), m_(memory) {
  ++m_.pass_;
  if (m_.now_) {
    m_.now_->reset(s_.fleet);
  } else {
    m_.now_.emplace(s_.fleet);
    m_.reserved_.emplace(s_.fleet);
  }
  m_.reserved_->reset(s_.fleet);
  stopped_.assign(s_.running.size(), 0);
  m_.priced_.begin();
  if (s_.power != nullptr) power_ = *s_.power;
}

// Orders and timelines that depend on the clock are valid only at the time of the pass.
bool Pass::holds_at_all() const {
  return kind_ == PassKind::kIncremental && !makes_reservations() && s_.electricity == nullptr &&
         s_.carbon == nullptr &&
         ((policy_.inside == TenantOrder::kSubmitted && policy_.yield_ratio == 0) ||
          s_.waiting.empty()) &&
         (policy_.preemption == PreemptionRule::kNone ||
          policy_.preemption == PreemptionRule::kEntitled);
}

PassResult Pass::run(PassKind kind) {
  kind_ = kind;
  result_.holds_until = holds_at_all() ? Instant::max() : s_.now;
  relieve_power();
  clocks_at_ = result_.decisions.size();
  for (const RunningJob& job : s_.running) {
    if (job.stopping) count(*job.request, job.gangs, Held::kLess);
  }
  start_reserved();
  if (makes_reservations() && !s_.waiting.empty()) open_timeline();
  if (policy_.preemption == PreemptionRule::kAnew) {
    replan_all();
  } else if (policy_.preemption == PreemptionRule::kRounds) {
    run_rounds();
  } else if (policy_.preemption == PreemptionRule::kByOrder) {
    run_by_order();
  } else if (policy_.order == QueueOrder::kFair) {
    run_fair();
  } else {
    run_in_order();
  }
  tell_clocks(clocks_at_);
  // A pass that lowered clocks starts no improvements: they would cost power as well.
  if (kind == PassKind::kFull && !slowed_somebody()) {
    if (policy_.preemption == PreemptionRule::kEntitled) defragment();
    if (policy_.preemption != PreemptionRule::kRounds) improve_running();
    if (policy_.choice == OptionChoice::kCheapest) move_jobs();
    raise_clocks();
  }
  stagger_starts();
  if (!result_.decisions.empty()) hold_until(s_.now);
  return std::move(result_);
}

void Pass::open_queue() {
  m_.queue_.update(s_, policy_);
  askers_.assign(m_.queue_.askers(), {});
  groups_.assign(m_.queue_.groups(), {});
  result_.waiting.reserve(s_.waiting.size());
}

void Pass::run_in_order() {
  open_queue();
  const std::span<const QueuedJob> order = m_.queue_.order();
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (consider(order[i]) == Queue::kGoesOn) continue;
    if (kind_ == PassKind::kIncremental) note_held_back(order.subspan(i + 1));
    return;
  }
}

// One job with room is enough: it would run if the job before it did not stop the queue.
void Pass::note_held_back(std::span<const QueuedJob> behind) {
  const FleetView now = m_.now_->view();
  std::set<ClassId> without_room;
  for (const QueuedJob& queued : behind.first(std::min(behind.size(), kHeldBackAsked))) {
    const WaitingJob& job = s_.waiting[queued.at];
    if (queued.class_id.valid() && without_room.contains(queued.class_id)) continue;
    if (!may_take_any(*job.request)) continue;
    if (!m_.placer_.fits(now, *job.request, rules_for(job))) {
      if (queued.class_id.valid()) without_room.insert(queued.class_id);
      continue;
    }
    for (const RoleRequest& role : job.request->roles) {
      for (const GangOption& option : role.options) {
        const FreeCount free = now.free(Topology::root(), option.gang.type);
        if (free.devices >= option.gang.devices) result_.held_back.push_back(option.gang.type);
      }
    }
    std::ranges::sort(result_.held_back);
    return;
  }
}

// Services first, then all other jobs; inside each the tenants in fair order, and inside a tenant
// the highest rank first, then by Policy::inside.
void Pass::run_fair() {
  open_queue();
  const bool serves = std::any_of(m_.queue_.order().begin(), m_.queue_.order().end(),
                                  [](const QueuedJob& queued) { return queued.serves; });
  if (serves && run_fair_over(Services::kOnly) == Queue::kStops) return;
  run_fair_over(Services::kNone);
}

Pass::Queue Pass::run_fair_over(Services services) {
  const std::span<const QueuedJob> order = m_.queue_.order();
  std::vector<std::vector<std::uint32_t>> queues(s_.waiting.empty() ? 0 : usage().tree().size());
  std::vector<Waiting> wanted;
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    if (order[i].serves != (services == Services::kOnly)) continue;
    auto& queue = queues[order[i].tenant.value()];
    if (queue.empty()) {
      const JobRequest& request = *job_of(order[i]).request;
      wanted.push_back({request.tenant, request.roles.front().options.front().gang.type});
    }
    queue.push_back(i);
  }
  if (wanted.empty()) return Queue::kGoesOn;
  FairOrder fair(edit_usage(), capacity(), wanted);
  std::vector<std::uint32_t> next(queues.size());
  while (const std::optional<TenantId> tenant = fair.next()) {
    auto& at = next[tenant->value()];
    const std::vector<std::uint32_t>& queue = queues[tenant->value()];
    changed_.clear();
    if (consider(order[queue[at++]]) == Queue::kStops) return Queue::kStops;
    for (const TenantId changed : changed_) fair.usage_changed(changed);
    if (at == queue.size()) fair.exhausted(*tenant);
  }
  return Queue::kGoesOn;
}

std::vector<std::int64_t> Pass::capacity() const {
  const Topology& topology = s_.fleet.topology();
  std::vector<std::int64_t> devices(topology.type_count());
  for (std::uint32_t t = 0; t < devices.size(); ++t) {
    devices[t] = topology.device_count(Topology::root(), FleetTypeId(t));
  }
  return devices;
}

Pass::Queue Pass::consider(const QueuedJob& queued) {
  const WaitingJob& job = job_of(queued);
  if (std::binary_search(held_.begin(), held_.end(), job.id)) return Queue::kGoesOn;
  if (queued.dated || queued.planned) hold_until(s_.now);
  Refusal refusal;
  bool asked = true;
  if (const Refusal* known = remembered(queued)) {
    refusal = *known;
  } else if (result_.candidates >= policy_.budget && kind_ == PassKind::kIncremental) {
    refusal = {RejectionKind::kBusy, TopologyLevel::kFleet, 0};
    asked = false;
    hold_until(s_.now);
  } else {
    in_the_way_ = false;
    FoundOrRefusal found = find(job);
    share_power(job, found);
    if (found) {
      start(job, *std::move(found));
      return Queue::kGoesOn;
    }
    refusal = found.error();
    if (!in_the_way_) remember(queued, refusal);
  }
  // A class shares the refusal of room, but the right to preempt belongs to the job's tenant and
  // priority.
  if (asked && policy_.preemption == PreemptionRule::kEntitled && preempt_for(queued, refusal)) {
    return Queue::kGoesOn;
  }
  if (asked && take_surplus(queued, refusal)) return Queue::kGoesOn;
  if (asked && overtake(queued, refusal)) return Queue::kGoesOn;
  wait(job, refusal);
  reserve(queued, refusal);
  return policy_.blocked == Blocked::kStops ? Queue::kStops : Queue::kGoesOn;
}

// A room's refusal says nothing about quotas, which are the tenant's, so may_take_any() is checked.
// Whether there is room does not depend on links; the refusal of a class may.
const Refusal* Pass::remembered(const QueuedJob& queued) {
  const auto in = [&](const std::vector<PassMemory::Refused>& list,
                      ClassId id) -> const PassMemory::Refused* {
    if (!id.valid() || id.value() >= list.size()) return nullptr;
    const PassMemory::Refused& refused = list[id.value()];
    if (refused.pass == 0) return nullptr;
    const bool holds = refused.pass == m_.pass_ || (refused.changes.freed == s_.changes.freed &&
                                                    refused.changes.plans == s_.changes.plans);
    return holds ? &refused : nullptr;
  };
  const PassMemory::Refused* known = in(m_.classes_, queued.class_id);
  if (known != nullptr && known->changes.links == s_.changes.links) return &known->refusal;
  known = in(m_.refused_rooms_, queued.room);
  return known != nullptr && may_take_any(queued) ? &known->refusal : nullptr;
}

bool Pass::may_take_any(const QueuedJob& queued) {
  const JobRequest& request = *job_of(queued).request;
  if (queued.group == QueuedJob::kNone) return may_take_any(request);
  Group& group = groups_[queued.group];
  if (group.under != usage_changes_) group = {usage_changes_, may_take_any(request)};
  return group.may_take_any;
}

bool Pass::may_take_any(const JobRequest& request) const {
  if (policy_.quotas != Quotas::kHeld) return true;
  const auto allowed = [&](const GangOption& option) {
    return usage().room(request.tenant, option.gang.type).devices >= option.gang.devices;
  };
  return std::all_of(request.roles.begin(), request.roles.end(), [&](const RoleRequest& role) {
    return std::all_of(role.options.begin(), role.options.end(), allowed);
  });
}

// Only kBusy is remembered: a quota refuses a tenant, not a class. With priorities or guarantees
// one job of a class may get room that another does not, so that is tried anew for each job.
void Pass::remember(const QueuedJob& queued, const Refusal& refusal) {
  const ClassId id = queued.class_id;
  if (!id.valid() || refusal.kind != RejectionKind::kBusy) return;
  if (id.value() >= m_.classes_.size()) m_.classes_.resize(id.value() + 1);
  const PassMemory::Refused refused{refusal, s_.changes, m_.pass_};
  m_.classes_[id.value()] = refused;
  if (!lacks_room_ || hidden_) return;
  const ClassId room = queued.room;
  if (room.value() >= m_.refused_rooms_.size()) m_.refused_rooms_.resize(room.value() + 1);
  m_.refused_rooms_[room.value()] = refused;
}

void Pass::wait(const WaitingJob& job, const Refusal& refusal) {
  result_.waiting.push_back({job.id, refusal});
  if (refusal.kind == RejectionKind::kBusy) blocked_.push_back(&job);
}

Pass::FoundOrRefusal Pass::find(const WaitingJob& job) {
  if (!m_.reserved_->any()) return find_in(m_.now_->view(), job);
  if (const std::optional<std::uint32_t> missing = missing_beside_slots(job)) {
    in_the_way_ = true;
    const GangRequest& gang = job.request->roles.front().options.front().gang;
    const bool one_node = gang.devices == gang.node_devices;
    const TopologyLevel level = one_node ? TopologyLevel::kNode : TopologyLevel::kFleet;
    return tl::unexpected(Refusal{RejectionKind::kBusy, level, *missing});
  }
  FoundOrRefusal beside = find_in(m_.reserved_->shadow(), job);
  if (beside) return beside;
  const FleetView now = m_.now_->view();
  const bool look = views_ < kVainViews;
  const FleetView until = look ? m_.reserved_->beside(now, job.id, latest_end(job)) : now;
  FoundOrRefusal before = m_.reserved_->shows(until) ? beside : find_in(until, job);
  if (before && !m_.reserved_->delays(before->gangs, end_of(*before), job.id)) return before;
  if (!before && before.error().kind != RejectionKind::kBusy) return before;
  if (!before && !m_.placer_.fits(now, *job.request, rules_for(job))) return find_in(now, job);
  if (look) ++views_;
  // The refusal depends on lengths and on the clock, so the next job of the class may still start.
  in_the_way_ = true;
  return beside;
}

// The option with the longest run counts.
Instant Pass::latest_end(const WaitingJob& job) const {
  Duration longest;
  for (const RoleRequest& role : job.request->roles) {
    for (const GangOption& option : role.options) {
      const auto whole =
          whole_run_time(*job.request, role, option, {best_plan(s_.plans, option), 1});
      if (!whole) return Instant::max();
      longest = std::max(longest, *whole);
    }
  }
  return s_.now + Duration::from_seconds(longest.count_seconds() * (1 - job.done));
}

// Returns the least number of devices missing, by any option, if each option lacks free devices
// beside those kept for others until the job could be done: no place is sought then.
std::optional<std::uint32_t> Pass::missing_beside_slots(const WaitingJob& job) const {
  const JobRequest& request = *job.request;
  if (policy_.preemption == PreemptionRule::kAnew || gangs_of(request) != 1 ||
      !may_take_any(request)) {
    return std::nullopt;
  }
  std::uint32_t least = std::numeric_limits<std::uint32_t>::max();
  for (const GangOption& option : request.roles.front().options) {
    const std::uint32_t missing = missing_beside_slots(job, option);
    if (missing == 0) return std::nullopt;
    least = std::min(least, missing);
  }
  return least;
}

// Returns 0 if there may be enough.
std::uint32_t Pass::missing_beside_slots(const WaitingJob& job, const GangOption& option) const {
  constexpr Duration kRounding = Duration::milliseconds(1);
  const JobRequest& request = *job.request;
  const GangRequest& gang = option.gang;
  if (option.plan || gang.share != kWholeDevice) return 0;
  const auto whole = whole_run_time(request, request.roles.front(), option, {});
  const Duration left = Duration::from_seconds(whole ? whole->count_seconds() * (1 - job.done) : 0);
  const Instant end = whole ? s_.now + left - kRounding : Instant::max();
  FreeCount kept = m_.reserved_->kept(gang.type, end);
  if (m_.reserved_->has(job.id)) {  // its own slot does not count
    for (const Reservation& slot : result_.reservations) {
      if (slot.job != job.id) continue;
      const PlacedGang& own = slot.gangs.front();
      kept.devices -=
          std::min(kept.devices, request.roles[own.role].options[own.option].gang.devices);
      kept.nodes -= std::min(kept.nodes, static_cast<std::uint32_t>(own.allocation.ranks.size()));
    }
  }
  FreeCount free = s_.fleet.free(Topology::root(), gang.type);
  free.devices -= kept.devices;
  free.nodes -= kept.nodes;
  return devices_missing(s_.fleet.topology(), gang, free);
}

Pass::FoundOrRefusal Pass::find_in(const FleetView& view, const WaitingJob& job) {
  ++result_.placements;
  FoundOrRefusal found =
      policy_.choice == OptionChoice::kCheapest ? by_price(view, job) : by_fit(view, job);
  if (!found || !power_ || power_counts_ == PowerCounts::kNo || found->gangs.size() == 1) {
    return found;
  }
  // Each gang was checked against the power caps alone.
  if (!power_holds(*found)) {
    return tl::unexpected(Refusal{RejectionKind::kPower, TopologyLevel::kFleet, 0});
  }
  return found;
}

JobPlaceRules Pass::rules_for(const WaitingJob& job) {
  JobPlaceRules rules;
  rules.fit = policy_.node_fit;
  if (keeps_distance(*job.request)) {
    rules.siblings = siblings_of(*job.request, s_.running);
    for (const Start& each : starts_) {
      const auto& start = std::get<StartJob>(result_.decisions[each.decision]);
      add_siblings(*job.request, {*each.job->request, start.gangs}, rules.siblings);
    }
  }
  if (job.request->preemptible) {
    rules.share_max = static_cast<std::uint16_t>(policy_.oversubscription * kWholeDevice);
  }
  if (policy_.quotas == Quotas::kHeld) {
    rules.may_take = [this, tenant = job.request->tenant](FleetTypeId type, std::uint32_t devices) {
      const auto free = [type](const FleetView& view) {
        return std::int64_t{view.free(Topology::root(), type).devices};
      };
      const std::int64_t left = left_ == nullptr ? 0 : free(*left_) - free(m_.now_->view());
      return usage().room(tenant, type).devices >= devices - left;
    };
  }
  return rules;
}

Pass::FoundOrRefusal Pass::by_fit(const FleetView& view, const WaitingJob& job) {
  GangsOrRefusal gangs = m_.placer_.place(view, *job.request, rules_for(job));
  lacks_room_ = !gangs && (gangs_of(*job.request) == 1 || policy_.quotas == Quotas::kIgnored) &&
                may_take_any(*job.request);
  if (!gangs) return tl::unexpected(gangs.error());
  return with_terms(view, job, *std::move(gangs));
}

Pass::FoundOrRefusal Pass::with_terms(const FleetView& view, const WaitingJob& job,
                                      std::vector<PlacedGang> gangs) const {
  Found found{std::move(gangs), {}, std::nullopt, Duration()};
  const PriceContext context = context_of(view);
  for (const PlacedGang& gang : found.gangs) {
    const auto terms = terms_of(context, job, gang);
    if (!terms) return tl::unexpected(terms.error());
    found.terms.push_back(*terms);
  }
  found.length = longest_of(found.terms);
  return found;
}

PriceContext Pass::context_of(const FleetView& view) const {
  const bool counts = power_ && power_counts_ == PowerCounts::kYes;
  return {s_, policy_, view, counts ? &*power_ : nullptr};
}

Pass::FoundOrRefusal Pass::by_price(const FleetView& view, const WaitingJob& job) {
  const bool lasts =
      view.pages().nodes == m_.now_->view().pages().nodes || m_.reserved_->shows(view);
  PricedOrRefusal priced = m_.priced_.place(job, context_of(view), rules_for(job),
                                            lasts ? ViewLasts::kYes : ViewLasts::kNo);
  lacks_room_ = !priced && m_.priced_.lacks_room() && m_.priced_.missing().empty();
  hold_until(m_.priced_.holds_until());
  result_.wake = std::min(result_.wake, m_.priced_.wake());
  result_.candidates += m_.priced_.candidates().size();
  for (const PlanKey& key : m_.priced_.missing()) result_.decisions.push_back(WantPlan{key});
  if (!priced) return tl::unexpected(priced.error());
  return Found{std::move(priced->gangs), std::move(priced->terms), priced->price, priced->length};
}

// Offers cached for a view are invalid once the view changes.
FleetOverlay& Pass::edit_now() {
  m_.priced_.forget_offers();
  return *m_.now_;
}

Reserved& Pass::edit_reserved() {
  m_.priced_.forget_offers();
  return *m_.reserved_;
}

bool Pass::power_holds(const Found& found) const {
  PowerBudget budget = *power_;
  for (std::size_t i = 0; i < found.gangs.size(); ++i) {
    const auto draws = draws_of_gang(budget.tree(), found.gangs[i], found.terms[i].draw);
    if (budget.try_add(*s_.caps, draws)) return false;
  }
  return true;
}

Instant Pass::end_of(const Found& found) const {
  return found.length ? s_.now + *found.length : Instant::max();
}

void Pass::start(const WaitingJob& job, Found found) {
  take(edit_now(), std::span<const PlacedGang>(found.gangs));
  if (m_.reserved_->any()) edit_reserved().cover(found.gangs);
  if (timeline_open_) {
    m_.timeline_.reserve({s_.now, found.gangs}, found.length.value_or(Duration::max()));
  }
  count(*job.request, found.gangs, Held::kMore);
  m_.priced_.add_start(*job.request, found.gangs, end_of(found));
  for (std::size_t i = 0; power_ && i < found.gangs.size(); ++i) {
    power_->add(draws_of_gang(power_->tree(), found.gangs[i], found.terms[i].draw));
  }
  result_.decisions.emplace_back(StartJob{job.id, std::move(found.gangs), std::move(found.terms),
                                          found.length, Duration(), found.price});
  starts_.push_back({&job, result_.decisions.size() - 1});
  if (powered_) add_powered_start(static_cast<std::uint32_t>(starts_.size() - 1));
}

// In the usage, a job that is stopping has already left and a job already holds the devices kept
// for it.
void Pass::count(const JobRequest& job, std::span<const PlacedGang> gangs, Held held) {
  for (const PlacedGang& gang : gangs) {
    const GangRequest& request = job.roles[gang.role].options[gang.option].gang;
    const auto devices = static_cast<std::int64_t>(request.devices);
    apply({job.tenant, request.type, rank_of(job), held == Held::kMore ? devices : -devices});
  }
}

void Pass::apply(const UsageChange& change) {
  if (s_.usage == nullptr) return;
  edit_usage().apply(change);
  ++usage_changes_;
  changed_.push_back(change.tenant);
}

TenantUsage& Pass::edit_usage() {
  if (!usage_) usage_ = *s_.usage;
  return *usage_;
}

}  // namespace orrery
