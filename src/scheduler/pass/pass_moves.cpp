// Running jobs that gain from other devices.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "scheduler/pass/pass.hpp"
#include "scheduler/power/gang_power.hpp"
#include "scheduler/price/run_time.hpp"
#include "scheduler/request/job_array.hpp"
#include "scheduler/tenants/queue_order.hpp"

namespace orrery {
namespace {

/// The most moves that a pass proposes: each stops a job for a while.
constexpr std::uint32_t kMovesMax = 4;
/// Blocked jobs for which one pass makes room.
constexpr std::size_t kGoalsMax = 4;
/// The ratio of a step to its canonical one above which another place is sought.
constexpr double kRatioWorthALook = 1.02;
/// The worth of a rest of a run whose joules are not known: a job leaves no place and takes no
/// place for it.
constexpr std::int64_t kWorthUnknown = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kWorthLeast = std::numeric_limits<std::int64_t>::min();
/// Micro-dollars by which the rounded terms of a price may miss their bounds together.
constexpr std::int64_t kRounding = 32;

/// Whether the place of the new gang does not depend on what the job, of one gang, holds.
bool apart(const RunningJob& job, const GangRequest& gang) {
  const PlacedGang& old = job.gangs.front();
  const GangRequest& has = job.request->roles[old.role].options[old.option].gang;
  return gang.type != has.type && old.allocation.idle.empty() && !gang.exclusive;
}

/// The request of a job of one gang.
const GangRequest& gang_of(const RunningJob& job) {
  const PlacedGang& gang = job.gangs.front();
  return job.request->roles[gang.role].options[gang.option].gang;
}

/// Whether the new gang asks only for whole devices, apart from those the job holds.
bool elsewhere(const RunningJob& job, const GangRequest& gang) {
  return apart(job, gang) && gang.share == kWholeDevice && !gang.asks_slice();
}

bool same(const PriceWeights& a, const PriceWeights& b) {
  using Figures = std::array<double, sizeof(PriceWeights) / sizeof(double)>;
  return std::bit_cast<Figures>(a) == std::bit_cast<Figures>(b);
}

/// Whether a place for the job's gang can be chosen without regard to other gangs.
bool moves_alone(const RunningJob& job) {
  return job.gangs.size() == 1 && !keeps_distance(*job.request);
}

bool may_be_moved(const RunningJob& job) {
  return job.request->preemptible || job.request->checkpoint_interval != Duration::max();
}

}  // namespace

// Clears the entries when an input of the prices of running jobs changes, which is seldom.
void PassMemory::keep_stays(const Situation& s, const Policy& policy) {
  StaysUnder& under = stays_under_;
  const bool holds = same(under.weights, policy.weights) && under.horizon == policy.horizon &&
                     under.power == (s.power != nullptr) &&
                     under.failures_per_node_second == s.failures_per_node_second &&
                     std::equal(under.node_risk.begin(), under.node_risk.end(), s.node_risk.begin(),
                                s.node_risk.end());
  if (!holds) {
    stays_.clear();
    under = {policy.weights,
             policy.horizon,
             s.power != nullptr,
             s.failures_per_node_second,
             {s.node_risk.begin(), s.node_risk.end()}};
  }
  stays_.resize(s.running.size());
}

bool PassMemory::stays(std::uint32_t running, const Situation& s) const {
  const Stays& known = stays_[running];
  const RunningJob& job = s.running[running];
  return s.now < known.until && known.id == job.id && known.since == job.since &&
         known.expected_end == job.expected_end;
}

// Devices of types that no blocked job asks for go to running jobs that gain from them: an elastic
// job takes more of its type; where options are chosen by price, a job may change to another type.
void Pass::improve_running() {
  std::vector<char> wanted(s_.fleet.topology().type_count());
  for (const WaitingJob* job : blocked_) {
    for (const RoleRequest& role : job->request->roles) {
      for (const GangOption& option : role.options) wanted[option.gang.type.value()] = 1;
    }
  }
  m_.keep_stays(s_, policy_);
  for (std::uint32_t i = 0; i < s_.running.size(); ++i) {
    if (m_.stays(i, s_)) continue;
    const RunningJob& job = s_.running[i];
    const bool may = stopped_[i] == 0 && !job.stopping && moves_alone(job) &&
                     s_.now - job.started >= Duration::from_seconds(policy_.min_run.value());
    if (may && improve(i, wanted)) stopped_[i] = 1;
  }
}

bool Pass::may_change_to(const RunningJob& job, const GangOption& to) const {
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
         usage().room(job.request->tenant, gets.type).devices >= more;
}

// The place of a gang that does not depend on the job's devices is the same for each job until a
// job moves, so it is cached.
std::optional<Allocation> Pass::place_for(const RunningJob& job, const GangRequest& gang) {
  if (!apart(job, gang)) {
    AllocationOrRefusal placed = m_.placer_.placer().place(m_.now_->view(), gang);
    return placed ? std::optional(*std::move(placed)) : std::nullopt;
  }
  const auto [at, fresh] = elsewhere_.try_emplace(gang);
  if (fresh) {
    AllocationOrRefusal placed = m_.placer_.placer().place(m_.now_->view(), gang);
    if (placed) at->second = *std::move(placed);
  }
  return at->second;
}

// Most running jobs gain nothing elsewhere or find no room. This is shown without taking them out
// of the fleet: by the free counts, which are upper bounds, and by the least that another type and
// the most that this place can cost; first for any place, then for the actual one.
Pass::Gain Pass::may_gain(const RunningJob& job, std::uint32_t to) {
  const PlacedGang& old = job.gangs.front();
  const GangRequest& has = gang_of(job);
  const GangRequest& gets = job.request->roles[old.role].options[to].gang;
  if (!elsewhere(job, gets)) return Gain::kMaybe;
  const FleetView view = m_.now_->view();
  const std::uint32_t units = view.units(Topology::root(), gets.type, gets.node_devices);
  if (units < gets.devices / gets.node_devices) return Gain::kNoRoom;
  if (!bounded(job, to)) return Gain::kMaybe;
  const PriceContext context = context_of(view);
  const Bounds bounds = bounds_at(s_.now, job, to);
  const std::int64_t change =
      price_of_lost_work(context, as_waiting(job, s_.now), lost_device_seconds(job)).total();
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

bool Pass::bounded(const RunningJob& job, std::uint32_t to) const {
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
Pass::Bounds Pass::bounds_at(Instant time, const RunningJob& job, std::uint32_t to) const {
  const PriceContext context = context_of(m_.now_->view());
  const PlacedGang& old = job.gangs.front();
  const WaitingJob left = as_waiting(job, time);
  GangTerms here = job.terms.front();
  here.length = job.expected_end - time;
  return {most_price(context, left, old, here).total() + kRounding,
          least_price(context, left, {old.role, to, Duration()}).total()};
}

// Holds for any place, and even if the job has just written a checkpoint; reduced by more than the
// rounding errors of doubles.
std::int64_t Pass::margin_at(Instant time, const RunningJob& job, std::uint32_t to) const {
  const PriceContext context = context_of(m_.now_->view());
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
Instant Pass::stays_until(const RunningJob& job) const {
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
Pass::Rest Pass::rest_of(const RunningJob& job, const PlacedGang& gang, GangTerms terms) const {
  const PlacedGang& old = job.gangs.front();
  const RoleRequest& role = job.request->roles[old.role];
  if (!terms.length) {
    const double ran = job.attained_at(s_.now) / job.devices();
    const double faster = role.options[gang.option].speed / role.options[old.option].speed;
    terms.length = Duration::from_seconds(ran / faster);
  }
  if (policy_.choice != OptionChoice::kCheapest) return {*terms.length, terms.length->count_ns()};
  const PriceContext context = context_of(m_.now_->view());
  const WaitingJob left = as_waiting(job, s_.now);
  if (job.request->goal != JobGoal::kEnergy) {
    return {*terms.length, price_of(context, left, gang, terms).total()};
  }
  const ExpectedEnergy energy = energy_of(context, left, gang, terms);
  return {*terms.length, energy.known ? energy.joules : kWorthUnknown};
}

// The cost of a move in the unit of rest_of().
std::int64_t Pass::cost_of_move(const RunningJob& job, const Rest& stay) const {
  if (policy_.choice != OptionChoice::kCheapest) return 0;
  const double lost = lost_device_seconds(job);
  const PriceContext context = context_of(m_.now_->view());
  if (job.request->goal != JobGoal::kEnergy) {
    return price_of_lost_work(context, as_waiting(job, s_.now), lost).total();
  }
  // The devices draw as much while they repeat the lost work as in the rest of the run.
  const double rest = stay.length.count_seconds() * gang_of(job).devices;
  return rest > 0 ? static_cast<std::int64_t>(static_cast<double>(stay.worth) * (lost / rest)) : 0;
}

// Lists options that may be better for a job; if none is, stores until when that holds.
std::vector<std::uint32_t> Pass::options_to_try(std::uint32_t running,
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
    m_.stays_[running] = {job.id, job.since, job.expected_end, stays_until(job)};
  }
  return options;
}

// Places the job where there is room; if that closes before the job would be done, beside the nodes
// that close.
std::optional<Pass::Found> Pass::option_of(const RunningJob& job, std::uint32_t option) {
  const std::uint32_t role = job.gangs.front().role;
  const GangRequest& gang = job.request->roles[role].options[option].gang;
  const auto found_at = [&](Allocation place) -> std::optional<Found> {
    FoundOrRefusal found = with_terms(m_.now_->view(), as_waiting(job, s_.now),
                                      {PlacedGang{role, option, std::move(place), gang.host}});
    if (!found) return std::nullopt;
    return *std::move(found);
  };
  std::optional<Allocation> place = place_for(job, gang);
  if (!place) return std::nullopt;
  std::optional<Found> found = found_at(*std::move(place));
  if (!found || !closes(found->gangs.front(), job, end_of(*found))) return found;
  FleetOverlay open(m_.now_->view());
  hide_closed(open, job, Instant::max());
  AllocationOrRefusal beside = m_.placer_.placer().place(open.view(), gang);
  return beside ? found_at(*std::move(beside)) : std::nullopt;
}

bool Pass::improve(std::uint32_t running, const std::vector<char>& wanted) {
  const RunningJob& job = s_.running[running];
  const PlacedGang& old = job.gangs.front();
  const RoleRequest& role = job.request->roles[old.role];
  const GangRequest& has = role.options[old.option].gang;
  const std::vector<std::uint32_t> options = options_to_try(running, wanted);
  if (options.empty()) return false;
  const bool priced = policy_.choice == OptionChoice::kCheapest;
  give_back(edit_now(), std::span<const PlacedGang>(job.gangs));
  leave_power(job);
  GangTerms here = job.terms.front();
  here.length.reset();
  const bool known = job.expected_end != Instant::max() && job.expected_end > s_.now;
  if (known) here.length = job.expected_end - s_.now;
  const Rest stay = rest_of(job, old, here);
  std::optional<Found> best;
  const bool comparable = stay.worth != kWorthUnknown;
  Rest least{{}, comparable ? stay.worth - cost_of_move(job, stay) : kWorthLeast};
  for (const std::uint32_t i : options) {
    std::optional<Found> found = option_of(job, i);
    if (!found || (!priced && !(known && found->length))) continue;
    GangTerms there = found->terms.front();
    if (!known) there.length.reset();
    const Rest rest = rest_of(job, found->gangs.front(), there);
    if (rest.worth >= least.worth) continue;
    least = rest;
    best = *std::move(found);
  }
  if (!best) {
    take(edit_now(), std::span<const PlacedGang>(job.gangs));
    enter_power(job.gangs.front(), terms_now(job, 0));
    return false;
  }
  take(edit_now(), std::span<const PlacedGang>(best->gangs));
  enter_power(best->gangs.front(), best->terms.front());
  keep_from_others(old);  // until its ranks have left
  elsewhere_.clear();
  const GangRequest& gets = role.options[best->gangs.front().option].gang;
  const std::int32_t rank = rank_of(*job.request);
  apply({job.request->tenant, has.type, rank, -std::int64_t{has.devices}});
  apply({job.request->tenant, gets.type, rank, std::int64_t{gets.devices}});
  result_.decisions.emplace_back(
      ResizeJob{job.id, std::move(best->gangs), std::move(best->terms), std::nullopt,
                (stay.length - least.length).count_seconds() * has.devices,
                job.request->restart.count_seconds() * gets.devices});
  return true;
}

void Pass::leave_power(const RunningJob& job) {
  for (std::size_t i = 0; power_ && i < job.gangs.size(); ++i) {
    power_->remove(draws_of_gang(power_->tree(), job.gangs[i], terms_now(job, i).draw));
  }
}

const GangTerms& Pass::terms_now(const RunningJob& job, std::size_t gang) const {
  const auto at = static_cast<std::uint32_t>(&job - s_.running.data());
  const auto found = clocked_.find({at, static_cast<std::uint32_t>(gang)});
  return found == clocked_.end() ? job.terms[gang] : found->second;
}

void Pass::enter_power(const PlacedGang& gang, const GangTerms& terms) {
  if (power_) power_->add(draws_of_gang(power_->tree(), gang, terms.draw));
}

// A job whose network got worse moves when its gain over the rest of its run exceeds the work it
// loses: since its last checkpoint, the checkpoint itself, the restart.
void Pass::move_jobs() {
  std::uint32_t moves = 0;
  for (std::uint32_t i = 0; i < s_.running.size() && moves < kMovesMax; ++i) {
    const RunningJob& job = s_.running[i];
    const bool may = stopped_[i] == 0 && !job.stopping && moves_alone(job) &&
                     job.gangs.front().allocation.ranks.size() > 1 &&
                     s_.now - job.started >= Duration::from_seconds(policy_.min_run.value());
    if (may && move(i)) ++moves;
  }
}

bool Pass::move(std::uint32_t running) {
  const RunningJob& job = s_.running[running];
  const PlacedGang& old = job.gangs.front();
  const GangOption& option = job.request->roles[old.role].options[old.option];
  if (!option.plan) return false;  // without a plan all places are alike
  const GangRequest& gang = option.gang;
  const WaitingJob left = as_waiting(job, s_.now);
  // The terms at a given place depend on links alone, not on the jobs there.
  const auto here = terms_of({s_, policy_, m_.now_->view(), nullptr}, left, old);
  if (!here || !here->length || here->ratio <= kRatioWorthALook) return false;
  FleetOverlay without(m_.now_->view());
  give_back(without, std::span<const PlacedGang>(job.gangs));
  hide_closed(without, job, s_.now + *here->length);
  leave_power(job);
  PlaceOptions options;
  options.most = policy_.offers;
  const double devices = old.allocation.devices();
  const double cost = lost_device_seconds(job);
  std::optional<PlacedGang> best;
  GangTerms best_terms;
  for (Allocation& offer : m_.placer_.placer().offers(without.view(), gang, options)) {
    PlacedGang there{old.role, old.option, std::move(offer), gang.host};
    const auto terms = terms_of(context_of(without.view()), left, there);
    if (!terms || !terms->length || terms->ratio >= here->ratio) continue;
    if (best && terms->ratio >= best_terms.ratio) continue;
    best = std::move(there);
    best_terms = *terms;
  }
  const double gained = best ? (*here->length - *best_terms.length).count_seconds() * devices : 0;
  if (!best || gained <= cost) {
    enter_power(old, terms_now(job, 0));
    return false;
  }
  enter_power(*best, best_terms);
  // The free part of its new place is taken; the job holds its old place until it has left.
  keep_from_others(*best);
  stopped_[running] = 1;
  result_.decisions.emplace_back(
      ResizeJob{job.id, {*std::move(best)}, {best_terms}, std::nullopt, gained, cost});
  return true;
}

// Seconds by which a blocked job starts sooner if room is made for it: until its slot, if it has
// one, and at most the policy's horizon.
double Pass::sooner(const WaitingJob& job) const {
  const double horizon = policy_.horizon.value();
  for (const Reservation& slot : result_.reservations) {
    if (slot.job == job.id) return std::min(horizon, (slot.start - s_.now).count_seconds());
  }
  return horizon;
}

// Makes room for blocked jobs for which enough devices are free, but not together. Jobs that may be
// preempted or write checkpoints may be moved, where starting the blocked job sooner is worth more
// than the moves cost.
void Pass::defragment() {
  if (blocked_.empty()) return;
  // Devices kept in slots are no room for a job, and moves do not free them.
  const FleetView view = m_.reserved_->any() ? m_.reserved_->shadow() : m_.now_->view();
  std::vector<const WaitingJob*> jobs;
  std::vector<RoomGoal> goals;
  for (const WaitingJob* job : blocked_) {
    const GangRequest& gang = job->request->roles.front().options.front().gang;
    const std::uint32_t devices = devices_wanted(*job->request);
    if (view.free(Topology::root(), gang.type).devices < devices) continue;
    jobs.push_back(job);
    goals.push_back({place_try(m_.placer_, *job->request, rules_for(*job)), devices,
                     std::llround(sooner(*job) * devices * 1000)});
    if (goals.size() == kGoalsMax) break;
  }
  if (goals.empty()) return;
  std::vector<std::uint32_t> who;
  std::vector<MovableGang> movable;
  for (std::uint32_t i = 0; i < s_.running.size(); ++i) {
    const RunningJob& job = s_.running[i];
    const bool may = stopped_[i] == 0 && !job.stopping && moves_alone(job) && may_be_moved(job) &&
                     s_.now - job.started >= Duration::from_seconds(policy_.min_run.value());
    if (!may) continue;
    const PlacedGang& gang = job.gangs.front();
    who.push_back(i);
    movable.push_back({{&gang.allocation, gang.host},
                       &job.request->roles[gang.role].options[gang.option].gang,
                       static_cast<std::int64_t>(lost_device_seconds(job) * 1000)});
  }
  if (movable.empty()) return;
  Placer placer(m_.placer_.placer().tree());
  for (RoomPlan& plan : make_room(view, movable, goals, placer)) {
    carry_out(plan, who, *jobs[plan.goal]);
  }
}

void Pass::carry_out(RoomPlan& plan, std::span<const std::uint32_t> who, const WaitingJob& job) {
  if (plan.moves.empty()) return;
  const std::optional<PowerBudget> before = power_;
  std::vector<ResizeJob> moves;
  moves.reserve(plan.moves.size());
  for (GangMove& move : plan.moves) {
    const RunningJob& moved = s_.running[who[move.gang]];
    PlacedGang there = moved.gangs.front();
    there.allocation = std::move(move.to);
    leave_power(moved);
    const auto terms = terms_of(context_of(s_.fleet), as_waiting(moved, s_.now), there);
    if (!terms && terms.error().kind == RejectionKind::kPower) {
      power_ = before;
      return;
    }
    enter_power(there, terms ? *terms : terms_now(moved, 0));
    moves.push_back({moved.id,
                     {std::move(there)},
                     {terms ? *terms : moved.terms.front()},
                     job.id,
                     static_cast<double>(plan.gain) / 1000,
                     lost_device_seconds(moved)});
  }
  for (std::size_t i = 0; i < moves.size(); ++i) {
    stopped_[who[plan.moves[i].gang]] = 1;
    keep_from_others(moves[i].gangs.front());
    result_.decisions.emplace_back(std::move(moves[i]));
  }
  Reservation slot{job.id, s_.now, std::move(plan.gangs)};
  for (const PlacedGang& gang : slot.gangs) keep_from_others(gang);
  // The job starts here, not in the slot that it was given before.
  std::erase_if(result_.reservations, [&](const Reservation& one) { return one.job == job.id; });
  result_.reservations.push_back(std::move(slot));
}

}  // namespace orrery
