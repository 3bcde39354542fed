#include "scheduler/pass/start_search.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "scheduler/pass/closures.hpp"
#include "scheduler/power/gang_power.hpp"
#include "scheduler/price/run_time.hpp"
#include "scheduler/request/job_array.hpp"

namespace orrery {
namespace {

/// The vain searches that a pass makes beside the reservations that matter to a job. Later jobs are
/// placed where they fit best, and wait if they meet a reservation there.
constexpr std::uint32_t kVainViews = 16;

}  // namespace

StartSearch::StartSearch(PassContext& pass, PassPlacers& placers)
    : pass_(pass),
      s_(pass.situation),
      policy_(pass.policy),
      placers_(placers),
      offered_at_(pass.fleet.edits()) {
  placers_.priced.begin();
}

StartOrRefusal StartSearch::find(const WaitingJob& job, PowerCounts power) {
  Reserved& reserved = pass_.fleet.reserved();
  const Limits limits{.power = power};
  if (!reserved.any()) return in(pass_.fleet.now(), job, limits);
  if (const std::optional<std::uint32_t> missing = missing_beside_slots(job)) {
    const GangRequest& gang = job.request->roles.front().options.front().gang;
    const bool one_node = gang.devices == gang.node_devices;
    const TopologyLevel level = one_node ? TopologyLevel::kNode : TopologyLevel::kFleet;
    return tl::unexpected(
        StartRefusal{{RejectionKind::kBusy, level, *missing}, RefusalCause::kReservation});
  }
  StartOrRefusal beside = in(reserved.shadow(), job, limits);
  if (beside) return beside;
  const FleetView now = pass_.fleet.now();
  const bool look = vain_views_ < kVainViews;
  const FleetView until = look ? reserved.beside(now, job.id, latest_end(job)) : now;
  StartOrRefusal before = reserved.shows(until) ? beside : in(until, job, limits);
  if (before && !reserved.delays(before->gangs, pass_.end_of(*before), job.id)) return before;
  if (!before && before.error().refusal.kind != RejectionKind::kBusy) return before;
  if (!before && !fits(now, job, rules_for(job))) return in(now, job, limits);
  if (look) ++vain_views_;
  // The refusal depends on lengths and on the clock, so the next job of the class may still start.
  beside.error().cause = RefusalCause::kReservation;
  return beside;
}

// The option with the longest run counts.
Instant StartSearch::latest_end(const WaitingJob& job) const {
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
std::optional<std::uint32_t> StartSearch::missing_beside_slots(const WaitingJob& job) {
  const JobRequest& request = *job.request;
  if (policy_.preemption == PreemptionRule::kAnew || gangs_of(request) != 1 ||
      !pass_.usage.may_take_any(request)) {
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
std::uint32_t StartSearch::missing_beside_slots(const WaitingJob& job, const GangOption& option) {
  constexpr Duration kRounding = Duration::milliseconds(1);
  const JobRequest& request = *job.request;
  const GangRequest& gang = option.gang;
  if (option.plan || gang.share != kWholeDevice) return 0;
  const auto whole = whole_run_time(request, request.roles.front(), option, {});
  const Duration left = Duration::from_seconds(whole ? whole->count_seconds() * (1 - job.done) : 0);
  const Instant end = whole ? s_.now + left - kRounding : Instant::max();
  Reserved& reserved = pass_.fleet.reserved();
  FreeCount kept = reserved.kept(gang.type, end);
  if (reserved.has(job.id)) {  // its own reservation does not count
    for (const Reservation& slot : pass_.result.reservations) {
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

StartOrRefusal StartSearch::in(const FleetView& view, const WaitingJob& job, const Limits& limits) {
  ++pass_.result.placements;
  StartOrRefusal found = policy_.choice == OptionChoice::kCheapest ? by_price(view, job, limits)
                                                                   : by_fit(view, job, limits);
  if (!found || !pass_.power.limited() || limits.power == PowerCounts::kNo ||
      found->gangs.size() == 1) {
    return found;
  }
  // Each gang was checked against the power caps alone.
  if (!pass_.power.holds(found->gangs, found->terms)) {
    return tl::unexpected(StartRefusal{{RejectionKind::kPower, TopologyLevel::kFleet, 0}});
  }
  return found;
}

JobPlaceRules StartSearch::rules_for(const WaitingJob& job, const FleetView* freed) const {
  JobPlaceRules rules;
  rules.fit = policy_.node_fit;
  if (keeps_distance(*job.request)) {
    rules.siblings = siblings_of(*job.request, s_.running);
    for (const StartedJob& start : pass_.starts()) {
      const StartJob& decision = pass_.decision_of(start);
      add_siblings(*job.request, {*start.job->request, decision.gangs}, rules.siblings);
    }
  }
  if (job.request->preemptible) {
    rules.share_max = static_cast<std::uint16_t>(policy_.oversubscription * kWholeDevice);
  }
  if (policy_.quotas == Quotas::kHeld) {
    rules.may_take = [this, freed, tenant = job.request->tenant](FleetTypeId type,
                                                                 std::uint32_t devices) {
      const auto free = [type](const FleetView& view) {
        return std::int64_t{view.free(Topology::root(), type).devices};
      };
      const std::int64_t left = freed == nullptr ? 0 : free(*freed) - free(pass_.fleet.now());
      return pass_.usage.now().room(tenant, type).devices >= devices - left;
    };
  }
  return rules;
}

StartOrRefusal StartSearch::by_fit(const FleetView& view, const WaitingJob& job,
                                   const Limits& limits) {
  const FleetView* freed = limits.freed_by == FreedBy::kOwnTenant ? &view : nullptr;
  GangsOrRefusal gangs = placers_.jobs.place(view, *job.request, rules_for(job, freed));
  if (gangs) return with_terms(view, job, *std::move(gangs), limits.power);
  const bool no_room = (gangs_of(*job.request) == 1 || policy_.quotas == Quotas::kIgnored) &&
                       pass_.usage.may_take_any(*job.request);
  return tl::unexpected(
      StartRefusal{gangs.error(), no_room ? RefusalCause::kNoRoom : RefusalCause::kOther});
}

// If the place closes before the job would be done, a second search hides the nodes that close.
StartOrRefusal StartSearch::by_option(const FleetView& view, const WaitingJob& job,
                                      std::uint32_t option) {
  const GangRequest& gang = job.request->roles.front().options[option].gang;
  const auto place = [&](const FleetView& in) -> StartOrRefusal {
    ++pass_.result.placements;
    AllocationOrRefusal placed = gangs().place(in, gang, {.fit = policy_.node_fit});
    if (!placed) return tl::unexpected(StartRefusal{placed.error()});
    return with_terms(in, job, {PlacedGang{0, option, *std::move(placed), gang.host}});
  };
  StartOrRefusal found = place(view);
  if (!found || !is_closed(found->gangs, s_, pass_.end_of(*found))) return found;
  FleetOverlay open(view);
  hide_closed(open, s_, pass_.end_of(*found));
  found = place(open.view());
  if (found && is_closed(found->gangs, s_, pass_.end_of(*found))) {
    return tl::unexpected(StartRefusal{{RejectionKind::kBusy, TopologyLevel::kFleet, 0}});
  }
  return found;
}

StartOrRefusal StartSearch::with_terms(const FleetView& view, const WaitingJob& job,
                                       std::vector<PlacedGang> gangs, PowerCounts power) const {
  PlannedStart found{std::move(gangs), {}, std::nullopt, Duration()};
  const PriceContext context = context_of(view, power);
  for (const PlacedGang& gang : found.gangs) {
    const auto terms = terms_of(context, job, gang);
    if (!terms) return tl::unexpected(StartRefusal{terms.error()});
    found.terms.push_back(*terms);
  }
  found.length = longest_of(found.terms);
  return found;
}

PriceContext StartSearch::context_of(const FleetView& view, PowerCounts power) const {
  const bool counts = pass_.power.limited() && power == PowerCounts::kYes;
  return {s_, policy_, view, counts ? &pass_.power.budget() : nullptr};
}

// Offers cached for a view are invalid once the view changes.
StartOrRefusal StartSearch::by_price(const FleetView& view, const WaitingJob& job,
                                     const Limits& limits) {
  PricedPlacer& placer = placers_.priced;
  if (pass_.fleet.edits() != offered_at_) placer.forget_offers();
  offered_at_ = pass_.fleet.edits();
  for (; starts_told_ < pass_.starts().size(); ++starts_told_) {
    const StartedJob& start = pass_.starts()[starts_told_];
    placer.add_start(*start.job->request, pass_.decision_of(start).gangs, start.end);
  }
  const bool lasts =
      view.pages().nodes == pass_.fleet.now().pages().nodes || pass_.fleet.reserved().shows(view);
  const FleetView* freed = limits.freed_by == FreedBy::kOwnTenant ? &view : nullptr;
  PricedOrRefusal priced = placer.place(job, context_of(view, limits.power), rules_for(job, freed),
                                        lasts ? ViewLasts::kYes : ViewLasts::kNo);
  pass_.hold_until(placer.holds_until());
  pass_.result.wake = std::min(pass_.result.wake, placer.wake());
  pass_.result.candidates += placer.candidates().size();
  for (const PlanKey& key : placer.missing()) pass_.result.decisions.push_back(WantPlan{key});
  if (priced) {
    return PlannedStart{std::move(priced->gangs), std::move(priced->terms), priced->price,
                        priced->length};
  }
  const bool no_room = placer.lacks_room() && placer.missing().empty();
  return tl::unexpected(
      StartRefusal{priced.error(), no_room ? RefusalCause::kNoRoom : RefusalCause::kOther});
}

Price StartSearch::price_of_all(const FleetView& view, const WaitingJob& job,
                                std::span<const PlacedGang> gangs,
                                std::span<const GangTerms> terms) const {
  PriceContext context = context_of(view);
  if (gangs.size() > 1) context.beside.until = least_seconds(context, job);
  Price sum;
  for (std::size_t i = 0; i < gangs.size(); ++i) {
    const Price price = price_of(context, job, gangs[i], terms[i]);
    sum += price;
    add_beside(context, job, {gangs[i], terms[i], price});
  }
  return sum;
}

}  // namespace orrery
