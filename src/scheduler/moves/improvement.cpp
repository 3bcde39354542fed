#include "scheduler/moves/improvement.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "scheduler/moves/movable.hpp"
#include "scheduler/pass/closures.hpp"
#include "scheduler/pass/running_gang.hpp"
#include "scheduler/tenants/queue_order.hpp"

namespace orrery {
namespace {

/// The worth of a rest of a run whose joules are not known: a job leaves no place and takes no
/// place for it.
constexpr std::int64_t kWorthUnknown = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kWorthLeast = std::numeric_limits<std::int64_t>::min();
/// Micro-dollars by which the rounded terms of a price may miss their bounds together.
constexpr std::int64_t kRounding = 32;

/// The request of a job of one gang.
const GangRequest& gang_of(const RunningJob& job) {
  return request_of(*job.request, job.gangs.front());
}

/// Whether the place of the new gang does not depend on what the job, of one gang, holds.
bool apart(const RunningJob& job, const GangRequest& gang) {
  return gang.type != gang_of(job).type && job.gangs.front().allocation.idle.empty() &&
         !gang.exclusive;
}

/// Whether the new gang asks only for whole devices, apart from those the job holds.
bool elsewhere(const RunningJob& job, const GangRequest& gang) {
  return apart(job, gang) && gang.share == kWholeDevice && !gang.asks_slice();
}

}  // namespace

Improvement::Improvement(PassContext& pass, StartSearch& search, StayMemo& stays)
    : pass_(pass), s_(pass.situation), policy_(pass.policy), search_(search), stays_(stays) {}

void Improvement::improve_running() {
  std::vector<char> wanted(s_.fleet.topology().type_count());
  for (const WaitingJob* job : pass_.blocked()) {
    for (const RoleRequest& role : job->request->roles) {
      for (const GangOption& option : role.options) wanted[option.gang.type.value()] = 1;
    }
  }
  stays_.begin(s_, policy_);
  for (std::uint32_t i = 0; i < s_.running.size(); ++i) {
    if (stays_.stays(i, s_)) continue;
    if (is_movable(pass_, i) && improve(i, wanted)) pass_.set_decided(i);
  }
}

bool Improvement::may_change_to(const RunningJob& job, const GangOption& to) const {
  const PlacedGang& old = job.gangs.front();
  const RoleRequest& role = job.request->roles[old.role];
  const GangRequest& has = role.options[old.option].gang;
  const GangRequest& gets = to.gang;
  std::uint32_t more = gets.devices;
  if (gets.type == has.type) {
    if (!role.elastic() || gets.devices <= has.devices) return false;
    more -= has.devices;
  } else if (policy_.choice != OptionChoice::kCheapest || !may_be_moved(job)) {
    return false;
  }
  return policy_.quotas == Quotas::kIgnored ||
         pass_.usage.now().room(job.request->tenant, gets.type).devices >= more;
}

// The place of a gang that does not depend on the job's devices is the same for each job until a
// job moves, so it is cached.
std::optional<Allocation> Improvement::place_for(const RunningJob& job, const GangRequest& gang) {
  if (!apart(job, gang)) {
    AllocationOrRefusal placed = search_.gangs().place(pass_.fleet.now(), gang);
    return placed ? std::optional(*std::move(placed)) : std::nullopt;
  }
  const auto [at, fresh] = elsewhere_.try_emplace(gang);
  if (fresh) {
    AllocationOrRefusal placed = search_.gangs().place(pass_.fleet.now(), gang);
    if (placed) at->second = *std::move(placed);
  }
  return at->second;
}

Improvement::Gain Improvement::may_gain(const RunningJob& job, std::uint32_t to) {
  const PlacedGang& old = job.gangs.front();
  const GangRequest& has = gang_of(job);
  const GangRequest& gets = job.request->roles[old.role].options[to].gang;
  if (!elsewhere(job, gets)) return Gain::kMaybe;
  const FleetView view = pass_.fleet.now();
  const std::uint32_t units = view.units(Topology::root(), gets.type, gets.node_devices);
  if (units < gets.devices / gets.node_devices) return Gain::kNoRoom;
  if (!bounded(job, to)) return Gain::kMaybe;
  const PriceContext context = search_.context_of(view);
  const Bounds bounds = bounds_at(s_.now, job, to);
  const std::int64_t change =
      price_of_lost_work(context, as_waiting(job, s_.now), lost_device_seconds(job, s_.now))
          .total();
  const auto gains = [&](double stranded_here, double stranded_there) {
    return bounds.there + price_of_stranded(context, gets.type, stranded_there).total() <
           bounds.stay - change + price_of_stranded(context, has.type, stranded_here).total();
  };
  const Topology& topology = view.topology();
  if (!gains(stranded_most(topology, has), -stranded_most(topology, gets))) {
    return Gain::kWorthNothing;
  }
  const std::optional<Allocation> place = place_for(job, gets);
  if (!place) return Gain::kNoRoom;
  return gains(stranded_devices(view, old.allocation.ranks, GangDevices::kOwn),
               stranded_devices(view, place->ranks))
             ? Gain::kMaybe
             : Gain::kNoRoom;
}

bool Improvement::bounded(const RunningJob& job, std::uint32_t to) const {
  const GangOption& option = job.request->roles[job.gangs.front().role].options[to];
  const bool known = job.expected_end != Instant::max() && job.expected_end > s_.now;
  const bool lasts = job.request->estimate || job.request->time_limit;
  return known && lasts && elsewhere(job, option.gang) &&
         policy_.choice == OptionChoice::kCheapest && !option.plan &&
         gang_of(job).share == kWholeDevice && job.request->goal != JobGoal::kEnergy &&
         s_.fleet.topology().sites().size() == 1 && (s_.costs == nullptr || s_.costs->uniform()) &&
         s_.electricity == nullptr && s_.carbon == nullptr;
}

// The most that the work left at a time can cost here, and the least on the other type.
Improvement::Bounds Improvement::bounds_at(Instant time, const RunningJob& job,
                                           std::uint32_t to) const {
  const PriceContext context = search_.context_of(pass_.fleet.now());
  const PlacedGang& old = job.gangs.front();
  const WaitingJob left = as_waiting(job, time);
  GangTerms here = job.terms.front();
  here.length = job.expected_end - time;
  return {most_price(context, left, old, here).total() + kRounding,
          least_price(context, left, {old.role, to, Duration()}).total()};
}

// Holds for any place, and even if the job has just written a checkpoint; reduced by more than the
// rounding errors of doubles.
std::int64_t Improvement::margin_at(Instant time, const RunningJob& job, std::uint32_t to) const {
  const PriceContext context = search_.context_of(pass_.fleet.now());
  const Topology& topology = context.view.topology();
  const GangRequest& has = gang_of(job);
  const GangRequest& gets = job.request->roles[job.gangs.front().role].options[to].gang;
  const auto [stay, there] = bounds_at(time, job, to);
  const double each =
      job.request->restart.count_seconds() + job.request->checkpoint_cost.count_seconds();
  const std::int64_t change =
      price_of_lost_work(context, as_waiting(job, time), each * job.devices()).total();
  const std::int64_t stranded =
      price_of_stranded(context, has.type, stranded_most(topology, has)).total() -
      price_of_stranded(context, gets.type, -stranded_most(topology, gets)).total();
  const std::int64_t slack = kRounding + (stay >> 40) + (there >> 40);
  return there + change - stay - stranded - slack;
}

// Until its run changes, the work left of a job shrinks linearly, as does the least cost on another
// type; the most cost of this place lies below a straight line (failures without checkpoints grow
// with the square of the time). So the margin lies above the line from now to the end. With a
// deadline the margin could lie below it.
Instant Improvement::stays_until(const RunningJob& job) const {
  const PriceWeights& weights = policy_.weights;
  const bool straight = !job.request->deadline && job.since < s_.now && weights.failure >= 0 &&
                        weights.lost_work >= 0;
  if (!straight) return s_.now;
  const RoleRequest& role = job.request->roles[job.gangs.front().role];
  Instant until = job.expected_end;
  for (std::uint32_t i = 0; i < role.options.size(); ++i) {
    const GangRequest& gets = role.options[i].gang;
    if (gets.type == gang_of(job).type) {
      if (role.elastic() && gets.devices > gang_of(job).devices) return s_.now;
      continue;
    }
    if (!bounded(job, i)) return s_.now;
    const auto now = static_cast<double>(margin_at(s_.now, job, i));
    const auto end = static_cast<double>(margin_at(job.expected_end, job, i));
    if (now <= 0) return s_.now;
    if (end >= 0) continue;
    const double left = (job.expected_end - s_.now).count_seconds();
    until = std::min(until, s_.now + Duration::from_seconds(left * now / (now - end)));
  }
  return until;
}

// Run times have heavy tails: a run of unknown end, or beyond its expected end, is expected to last
// as long again as it has run.
Improvement::Rest Improvement::rest_of(const RunningJob& job, const PlacedGang& gang,
                                       GangTerms terms) const {
  const PlacedGang& old = job.gangs.front();
  const RoleRequest& role = job.request->roles[old.role];
  if (!terms.length) {
    const double ran = job.attained_at(s_.now) / job.devices();
    const double faster = role.options[gang.option].speed / role.options[old.option].speed;
    terms.length = Duration::from_seconds(ran / faster);
  }
  if (policy_.choice != OptionChoice::kCheapest) return {*terms.length, terms.length->count_ns()};
  const PriceContext context = search_.context_of(pass_.fleet.now());
  const WaitingJob left = as_waiting(job, s_.now);
  if (job.request->goal != JobGoal::kEnergy) {
    return {*terms.length, price_of(context, left, gang, terms).total()};
  }
  const ExpectedEnergy energy = energy_of(context, left, gang, terms);
  return {*terms.length, energy.known ? energy.joules : kWorthUnknown};
}

// The cost of a move in the unit of rest_of().
std::int64_t Improvement::cost_of_move(const RunningJob& job, const Rest& stay) const {
  if (policy_.choice != OptionChoice::kCheapest) return 0;
  const double lost = lost_device_seconds(job, s_.now);
  const PriceContext context = search_.context_of(pass_.fleet.now());
  if (job.request->goal != JobGoal::kEnergy) {
    return price_of_lost_work(context, as_waiting(job, s_.now), lost).total();
  }
  // The devices draw as much while they repeat the lost work as in the rest of the run.
  const double rest = stay.length.count_seconds() * gang_of(job).devices;
  return rest > 0 ? static_cast<std::int64_t>(static_cast<double>(stay.worth) * (lost / rest)) : 0;
}

std::vector<std::uint32_t> Improvement::options_to_try(std::uint32_t running,
                                                       const std::vector<char>& wanted) {
  const RunningJob& job = s_.running[running];
  const RoleRequest& role = job.request->roles[job.gangs.front().role];
  std::vector<std::uint32_t> options;
  bool worth_nothing = false;
  for (std::uint32_t i = 0; i < role.options.size(); ++i) {
    const bool idle = wanted[role.options[i].gang.type.value()] == 0;
    if (!idle || !may_change_to(job, role.options[i])) continue;
    const Gain gain = may_gain(job, i);
    if (gain == Gain::kMaybe) options.push_back(i);
    worth_nothing = worth_nothing || gain == Gain::kWorthNothing;
  }
  if (options.empty() && worth_nothing) {
    stays_.remember(running, job, stays_until(job));
  }
  return options;
}

// Places the job where there is room; if that closes before the job would be done, beside the nodes
// that close.
std::optional<PlannedStart> Improvement::option_of(const RunningJob& job, std::uint32_t option) {
  const std::uint32_t role = job.gangs.front().role;
  const GangRequest& gang = job.request->roles[role].options[option].gang;
  const auto found_at = [&](Allocation place) -> std::optional<PlannedStart> {
    StartOrRefusal found =
        search_.with_terms(pass_.fleet.now(), as_waiting(job, s_.now),
                           {PlacedGang{role, option, std::move(place), gang.host}});
    if (!found) return std::nullopt;
    return *std::move(found);
  };
  std::optional<Allocation> place = place_for(job, gang);
  if (!place) return std::nullopt;
  std::optional<PlannedStart> found = found_at(*std::move(place));
  if (!found || !moves_to_closed(found->gangs.front(), s_, job, pass_.end_of(*found))) return found;
  FleetOverlay open(pass_.fleet.now());
  hide_closed(open, s_, job, Instant::max());
  AllocationOrRefusal beside = search_.gangs().place(open.view(), gang);
  return beside ? found_at(*std::move(beside)) : std::nullopt;
}

bool Improvement::improve(std::uint32_t running, const std::vector<char>& wanted) {
  const RunningJob& job = s_.running[running];
  const PlacedGang& old = job.gangs.front();
  const RoleRequest& role = job.request->roles[old.role];
  const GangRequest& has = role.options[old.option].gang;
  const std::vector<std::uint32_t> options = options_to_try(running, wanted);
  if (options.empty()) return false;
  const bool priced = policy_.choice == OptionChoice::kCheapest;
  give_back(pass_.fleet.edit(), std::span<const PlacedGang>(job.gangs));
  pass_.power.leave(job);
  GangTerms here = job.terms.front();
  here.length.reset();
  const bool known = job.expected_end != Instant::max() && job.expected_end > s_.now;
  if (known) here.length = job.expected_end - s_.now;
  const Rest stay = rest_of(job, old, here);
  std::optional<PlannedStart> best;
  const bool comparable = stay.worth != kWorthUnknown;
  Rest least{{}, comparable ? stay.worth - cost_of_move(job, stay) : kWorthLeast};
  for (const std::uint32_t i : options) {
    std::optional<PlannedStart> found = option_of(job, i);
    if (!found || (!priced && !(known && found->length))) continue;
    GangTerms there = found->terms.front();
    if (!known) there.length.reset();
    const Rest rest = rest_of(job, found->gangs.front(), there);
    if (rest.worth >= least.worth) continue;
    least = rest;
    best = *std::move(found);
  }
  if (!best) {
    take(pass_.fleet.edit(), std::span<const PlacedGang>(job.gangs));
    pass_.power.enter(job);
    return false;
  }
  take(pass_.fleet.edit(), std::span<const PlacedGang>(best->gangs));
  pass_.power.enter(best->gangs.front(), best->terms.front());
  pass_.fleet.keep_from_others(old);  // until its ranks have left
  elsewhere_.clear();
  const GangRequest& gets = role.options[best->gangs.front().option].gang;
  const std::int32_t rank = rank_of(*job.request);
  pass_.usage.apply({job.request->tenant, has.type, rank, -std::int64_t{has.devices}});
  pass_.usage.apply({job.request->tenant, gets.type, rank, std::int64_t{gets.devices}});
  pass_.result.decisions.emplace_back(
      ResizeJob{job.id, std::move(best->gangs), std::move(best->terms), std::nullopt,
                (stay.length - least.length).count_seconds() * has.devices,
                job.request->restart.count_seconds() * gets.devices});
  return true;
}

}  // namespace orrery
