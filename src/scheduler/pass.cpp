#include "scheduler/pass.hpp"

#include <algorithm>

#include "scheduler/fair_order.hpp"
#include "scheduler/gang_power.hpp"
#include "scheduler/queue_order.hpp"
#include "scheduler/run_time.hpp"

namespace orrery {
namespace {

/// Jobs for which a pass looks in vain beside the slots that matter to them. Those behind are put
/// where they fit best, and wait if they meet a slot there.
constexpr std::uint32_t kVainViews = 16;

bool any_has_plan(const JobRequest& request) {
  return std::any_of(request.roles.begin(), request.roles.end(), [](const RoleRequest& role) {
    return std::any_of(role.options.begin(), role.options.end(),
                       [](const GangOption& option) { return option.plan.has_value(); });
  });
}

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

// Orders and timelines that are made anew from the clock hold at no other time.
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
  for (const RunningJob& job : s_.running) {
    if (job.stopping) count(*job.request, job.gangs, Held::kLess);
  }
  start_reserved();
  if (makes_reservations() && !s_.waiting.empty()) open_timeline();
  if (policy_.preemption == PreemptionRule::kAnew) {
    run_anew();
  } else if (policy_.preemption == PreemptionRule::kByOrder) {
    run_by_order();
  } else if (policy_.order == QueueOrder::kFair) {
    run_fair();
  } else {
    run_in_order();
  }
  // Nobody is better off for a pass that had to slow somebody.
  if (kind == PassKind::kFull && !slowed_somebody()) {
    if (policy_.preemption == PreemptionRule::kEntitled) defragment();
    improve_running();
    if (policy_.choice == OptionChoice::kCheapest) move_jobs();
    raise_clocks();
  }
  stagger_starts();
  if (!result_.decisions.empty()) hold_until(s_.now);
  return std::move(result_);
}

void Pass::run_in_order() {
  for (const std::uint32_t at : in_order(s_, policy_)) {
    if (consider(s_.waiting[at]) == Queue::kStops) return;
  }
}

// Services first, then everything else; inside each the tenants in turn, and of a tenant the
// highest rank, then by Policy::inside.
void Pass::run_fair() {
  std::vector<std::uint32_t> order = in_order(s_, policy_);
  const auto others = std::stable_partition(order.begin(), order.end(), [&](std::uint32_t at) {
    return s_.waiting[at].request->kind == JobKind::kServe;
  });
  const std::span<const std::uint32_t> all(order);
  const auto services = static_cast<std::size_t>(others - order.begin());
  const Queue queue = run_fair_over(all.first(services));
  if (queue == Queue::kGoesOn) run_fair_over(all.subspan(services));
}

Pass::Queue Pass::run_fair_over(std::span<const std::uint32_t> order) {
  if (order.empty()) return Queue::kGoesOn;
  const TenantTree& tree = usage().tree();
  std::vector<std::vector<std::uint32_t>> queues(tree.size());
  std::vector<Waiting> wanted;
  for (const std::uint32_t at : order) {
    const JobRequest& request = *s_.waiting[at].request;
    auto& queue = queues[request.tenant.value()];
    if (queue.empty()) {
      wanted.push_back({request.tenant, request.roles.front().options.front().gang.type});
    }
    queue.push_back(at);
  }
  FairOrder fair(edit_usage(), capacity(), wanted);
  std::vector<std::uint32_t> next(queues.size());
  while (const std::optional<TenantId> tenant = fair.next()) {
    auto& at = next[tenant->value()];
    const std::vector<std::uint32_t>& queue = queues[tenant->value()];
    changed_.clear();
    if (consider(s_.waiting[queue[at++]]) == Queue::kStops) return Queue::kStops;
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

Pass::Queue Pass::consider(const WaitingJob& job) {
  if (std::binary_search(held_.begin(), held_.end(), job.id)) return Queue::kGoesOn;
  if (job.request->deadline || m_.has_plans(*job.request)) hold_until(s_.now);
  Refusal refusal;
  bool asked = true;
  if (const Refusal* known = remembered(job)) {
    refusal = *known;
  } else if (result_.candidates >= policy_.budget && kind_ == PassKind::kIncremental) {
    refusal = {RejectionKind::kBusy, TopologyLevel::kFleet, 0};
    asked = false;
    hold_until(s_.now);
  } else {
    in_the_way_ = false;
    FoundOrRefusal found = find(job);
    if (found) {
      start(job, *std::move(found));
      return Queue::kGoesOn;
    }
    refusal = found.error();
    if (!in_the_way_) remember(job, refusal);
  }
  // A class is refused room, not the right to it: that is its tenant's and its priority's.
  if (asked && policy_.preemption == PreemptionRule::kEntitled && preempt_for(job, refusal)) {
    return Queue::kGoesOn;
  }
  if (asked && take_surplus(job, refusal)) return Queue::kGoesOn;
  if (asked && overtake(job, refusal)) return Queue::kGoesOn;
  wait(job, refusal);
  reserve(job, refusal);
  return policy_.blocked == Blocked::kStops ? Queue::kStops : Queue::kGoesOn;
}

ClassId PassMemory::room_of(const JobRequest& request) {
  const ClassId id = request.class_id;
  if (!id.valid()) return {};
  if (id.value() >= room_of_class_.size()) room_of_class_.resize(id.value() + 1);
  ClassId& room = room_of_class_[id.value()];
  if (!room.valid()) room = rooms_.of_room(request);
  return room;
}

bool PassMemory::has_plans(const JobRequest& request) {
  const ClassId id = request.class_id;
  if (!id.valid()) return any_has_plan(request);
  if (id.value() >= planned_.size()) planned_.resize(id.value() + 1);
  Planned& planned = planned_[id.value()];
  if (planned == Planned::kNotAsked) {
    planned = any_has_plan(request) ? Planned::kYes : Planned::kNo;
  }
  return planned == Planned::kYes;
}

// Of rights nothing is remembered for a room: they are its tenant's. Whether there is room does not
// rest on links either; what a class was refused for may.
const Refusal* Pass::remembered(const WaitingJob& job) const {
  const auto in = [&](const std::vector<PassMemory::Refused>& list,
                      ClassId id) -> const PassMemory::Refused* {
    if (!id.valid() || id.value() >= list.size()) return nullptr;
    const PassMemory::Refused& refused = list[id.value()];
    if (refused.pass == 0) return nullptr;
    const bool holds = refused.pass == m_.pass_ || (refused.changes.freed == s_.changes.freed &&
                                                    refused.changes.plans == s_.changes.plans);
    return holds ? &refused : nullptr;
  };
  const PassMemory::Refused* known = in(m_.classes_, job.request->class_id);
  if (known != nullptr && known->changes.links == s_.changes.links) return &known->refusal;
  known = in(m_.refused_rooms_, m_.room_of(*job.request));
  return known != nullptr && may_take_any(*job.request) ? &known->refusal : nullptr;
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

// A quota refuses a tenant, not a class; and with priorities or guarantees one job of a class may
// be given room that another is not, which is asked anew each time.
void Pass::remember(const WaitingJob& job, const Refusal& refusal) {
  const ClassId id = job.request->class_id;
  if (!id.valid() || refusal.kind != RejectionKind::kBusy) return;
  if (id.value() >= m_.classes_.size()) m_.classes_.resize(id.value() + 1);
  const PassMemory::Refused refused{refusal, s_.changes, m_.pass_};
  m_.classes_[id.value()] = refused;
  if (!lacks_room_ || hidden_) return;
  const ClassId room = m_.room_of(*job.request);
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
  // That depends on lengths and on the clock: the next job of the class may have more luck.
  in_the_way_ = true;
  return beside;
}

// By whichever option it runs longest.
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

// Whether free devices are too few beside those kept for others until the job could be done, by
// each of its options: then no place is, and none is looked for. Its least number that is missing.
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

// 0: perhaps there are enough.
std::uint32_t Pass::missing_beside_slots(const WaitingJob& job, const GangOption& option) const {
  constexpr Duration kRounding = Duration::milliseconds(1);
  const JobRequest& request = *job.request;
  const GangRequest& gang = option.gang;
  if (option.plan || gang.share != kWholeDevice) return 0;
  const auto whole = whole_run_time(request, request.roles.front(), option, {});
  const Duration left = Duration::from_seconds(whole ? whole->count_seconds() * (1 - job.done) : 0);
  const Instant end = whole ? s_.now + left - kRounding : Instant::max();
  FreeCount kept = m_.reserved_->kept(gang.type, end);
  if (m_.reserved_->has(job.id)) {  // its own is none of them
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
  if (!found || !power_ || found->gangs.size() == 1) return found;
  // Each gang was weighed alone.
  if (!power_holds(*found)) {
    return tl::unexpected(Refusal{RejectionKind::kPower, TopologyLevel::kFleet, 0});
  }
  return found;
}

JobPlaceRules Pass::rules_for(const WaitingJob& job) {
  JobPlaceRules rules;
  rules.fit = policy_.node_fit;
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
    found.length = found.length && terms->length
                       ? std::optional(std::max(*found.length, *terms->length))
                       : std::nullopt;
  }
  return found;
}

PriceContext Pass::context_of(const FleetView& view) const {
  return {s_, policy_, view, power_ ? &*power_ : nullptr};
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

// What was offered in a view holds no longer once it shows something else.
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
  for (std::size_t i = 0; power_ && i < found.gangs.size(); ++i) {
    power_->add(draws_of_gang(power_->tree(), found.gangs[i], found.terms[i].draw));
  }
  result_.decisions.emplace_back(StartJob{job.id, std::move(found.gangs), std::move(found.terms),
                                          found.length, Duration(), found.price});
}

// As far as rights go, what is stopping has left, and what is kept for a job it already has.
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
