// Running jobs that would be better off elsewhere.
#include <algorithm>

#include "scheduler/gang_power.hpp"
#include "scheduler/pass.hpp"
#include "scheduler/queue_order.hpp"
#include "scheduler/run_time.hpp"

namespace orrery {
namespace {

/// Moves a pass proposes: each stops a job for a while.
constexpr std::uint32_t kMovesMax = 4;
/// Blocked gangs that room is made for in one pass.
constexpr std::size_t kGoalsMax = 4;
/// Steps over the canonical ones from which another place is looked for.
constexpr double kRatioWorthALook = 1.02;
/// Micro-dollars by which the terms of a price, each rounded, may miss their bounds together.
constexpr std::int64_t kRounding = 32;

/// Whether what a job of one gang holds has nothing to do with where another may go.
bool apart(const RunningJob& job, const GangRequest& gang) {
  const PlacedGang& old = job.gangs.front();
  const GangRequest& has = job.request->roles[old.role].options[old.option].gang;
  return gang.type != has.type && old.allocation.idle.empty() && !gang.exclusive;
}

bool may_be_moved(const RunningJob& job) {
  return job.request->preemptible || job.request->checkpoint_interval != Duration::max();
}

}  // namespace

// Devices nobody waits for go to those who are better off with them: an elastic job takes more of
// its type; where options are chosen by price, a job may leave for another type.
void Pass::improve_running() {
  std::vector<char> wanted(s_.fleet.topology().type_count());
  for (const WaitingJob* job : blocked_) {
    for (const RoleRequest& role : job->request->roles) {
      for (const GangOption& option : role.options) wanted[option.gang.type.value()] = 1;
    }
  }
  for (std::uint32_t i = 0; i < s_.running.size(); ++i) {
    const RunningJob& job = s_.running[i];
    const bool may = stopped_[i] == 0 && !job.stopping && job.gangs.size() == 1 &&
                     s_.now - job.started >= Duration::from_seconds(policy_.min_run.value());
    if (may && improve(job, wanted)) stopped_[i] = 1;
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

// Apart from what they hold, a gang goes to the same place whoever asks, until somebody moves.
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

// Most of those who run would be better off nowhere else, or find no room there. That is told
// without taking them out of the fleet: by the free counts, which are upper bounds, and by the
// least that another type and the most that this place can cost; first wherever that would be,
// then where it is.
bool Pass::may_gain(const RunningJob& job, std::uint32_t to) {
  const PlacedGang& old = job.gangs.front();
  const RoleRequest& role = job.request->roles[old.role];
  const GangRequest& has = role.options[old.option].gang;
  const GangRequest& gets = role.options[to].gang;
  if (!apart(job, gets) || gets.share < kWholeDevice || gets.asks_slice()) return true;
  const FleetView view = m_.now_->view();
  const std::uint32_t units = view.units(Topology::root(), gets.type, gets.node_devices);
  if (units < gets.devices / gets.node_devices) return false;
  const bool known = job.expected_end != Instant::max() && job.expected_end > s_.now;
  const bool lasts = job.request->estimate || job.request->time_limit;
  const bool bounded = known && lasts && policy_.choice == OptionChoice::kCheapest &&
                       !role.options[to].plan && has.share == kWholeDevice &&
                       view.topology().sites().size() == 1 && s_.electricity == nullptr &&
                       s_.carbon == nullptr;
  if (!bounded) return true;
  const PriceContext context = context_of(view);
  const WaitingJob left = as_waiting(job, s_.now);
  GangTerms here = job.terms.front();
  here.length = job.expected_end - s_.now;
  const std::int64_t stay = most_price(context, left, old, here).total() + kRounding -
                            price_of_lost_work(context, left, lost_device_seconds(job)).total();
  const std::int64_t there = least_price(context, left, {old.role, to, Duration()}).total();
  const auto gains = [&](double stranded_here, double stranded_there) {
    return there + price_of_stranded(context, gets.type, stranded_there).total() <
           stay + price_of_stranded(context, has.type, stranded_here).total();
  };
  const Topology& topology = view.topology();
  if (!gains(stranded_most(topology, has), -stranded_most(topology, gets))) return false;
  const std::optional<Allocation> place = place_for(job, gets);
  if (!place) return false;
  return gains(stranded_devices(view, old.allocation.ranks, GangDevices::kOwn),
               stranded_devices(view, place->ranks));
}

// Run times have heavy tails: of what nobody knows the end of, or has run beyond it, as much is
// expected to be left as has passed.
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
  return {*terms.length, price_of(context, as_waiting(job, s_.now), gang, terms).total()};
}

bool Pass::improve(const RunningJob& job, const std::vector<char>& wanted) {
  const PlacedGang& old = job.gangs.front();
  const RoleRequest& role = job.request->roles[old.role];
  const GangRequest& has = role.options[old.option].gang;
  std::vector<std::uint32_t> options;
  for (std::uint32_t i = 0; i < role.options.size(); ++i) {
    const bool idle = wanted[role.options[i].gang.type.value()] == 0;
    if (idle && may_change_to(job, role.options[i]) && may_gain(job, i)) options.push_back(i);
  }
  if (options.empty()) return false;
  const WaitingJob left = as_waiting(job, s_.now);
  const bool priced = policy_.choice == OptionChoice::kCheapest;
  give_back(*m_.now_, std::span<const PlacedGang>(job.gangs));
  leave_power(job);
  GangTerms here = job.terms.front();
  here.length.reset();
  const bool known = job.expected_end != Instant::max() && job.expected_end > s_.now;
  if (known) here.length = job.expected_end - s_.now;
  const Rest stay = rest_of(job, old, here);
  const std::int64_t change =
      priced
          ? price_of_lost_work(context_of(m_.now_->view()), left, lost_device_seconds(job)).total()
          : 0;
  std::optional<Found> best;
  Rest least{{}, stay.worth - change};
  for (const std::uint32_t i : options) {
    const GangRequest& gang = role.options[i].gang;
    std::optional<Allocation> placed = place_for(job, gang);
    if (!placed) continue;
    FoundOrRefusal found =
        with_terms(m_.now_->view(), left, {PlacedGang{old.role, i, *std::move(placed), gang.host}});
    if (!found || (!priced && !(known && found->length))) continue;
    GangTerms there = found->terms.front();
    if (!known) there.length.reset();
    const Rest rest = rest_of(job, found->gangs.front(), there);
    if (rest.worth >= least.worth) continue;
    least = rest;
    best = *std::move(found);
  }
  if (!best) {
    take(*m_.now_, std::span<const PlacedGang>(job.gangs));
    enter_power(job.gangs.front(), job.terms.front());
    return false;
  }
  take(*m_.now_, std::span<const PlacedGang>(best->gangs));
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
    power_->remove(draws_of_gang(power_->tree(), job.gangs[i], job.terms[i].draw));
  }
}

void Pass::enter_power(const PlacedGang& gang, const GangTerms& terms) {
  if (power_) power_->add(draws_of_gang(power_->tree(), gang, terms.draw));
}

// A job whose network got worse moves when what it gains over the rest of its run exceeds the work
// it loses: since its last checkpoint, the checkpoint itself, the restart.
void Pass::move_jobs() {
  std::uint32_t moves = 0;
  for (std::uint32_t i = 0; i < s_.running.size() && moves < kMovesMax; ++i) {
    const RunningJob& job = s_.running[i];
    const bool may = stopped_[i] == 0 && !job.stopping && job.gangs.size() == 1 &&
                     job.gangs.front().allocation.ranks.size() > 1 &&
                     s_.now - job.started >= Duration::from_seconds(policy_.min_run.value());
    if (may && move(i)) ++moves;
  }
}

bool Pass::move(std::uint32_t running) {
  const RunningJob& job = s_.running[running];
  const PlacedGang& old = job.gangs.front();
  const GangOption& option = job.request->roles[old.role].options[old.option];
  if (!option.plan) return false;  // one place is like another
  const GangRequest& gang = option.gang;
  const WaitingJob left = as_waiting(job, s_.now);
  // Of a place that is given the terms rest on links alone, not on who is there.
  const auto here = terms_of({s_, policy_, m_.now_->view(), nullptr}, left, old);
  if (!here || !here->length || here->ratio <= kRatioWorthALook) return false;
  FleetOverlay without(m_.now_->view());
  give_back(without, std::span<const PlacedGang>(job.gangs));
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
    enter_power(old, job.terms.front());
    return false;
  }
  enter_power(*best, best_terms);
  // What is free of its new place is taken; its old one it has until it has left.
  keep_from_others(*best);
  stopped_[running] = 1;
  result_.decisions.emplace_back(
      ResizeJob{job.id, {*std::move(best)}, {best_terms}, std::nullopt, gained, cost});
  return true;
}

// Blocked gangs for which there are devices enough, but not together. Whoever writes checkpoints
// may be moved, where starting the gang an horizon earlier is worth more than the moves cost.
void Pass::defragment() {
  std::vector<const WaitingJob*> jobs;
  std::vector<RoomGoal> goals;
  for (const WaitingJob* job : blocked_) {
    const GangRequest& gang = job->request->roles.front().options.front().gang;
    const std::uint32_t devices = devices_wanted(*job->request);
    if (m_.now_->view().free(Topology::root(), gang.type).devices < devices) continue;
    jobs.push_back(job);
    goals.push_back({[this, job](const FleetView& view) -> std::optional<std::vector<PlacedGang>> {
                       GangsOrRefusal gangs =
                           m_.placer_.place(view, *job->request, rules_for(*job));
                       if (!gangs) return std::nullopt;
                       return *std::move(gangs);
                     },
                     devices, static_cast<std::int64_t>(policy_.horizon.value() * devices * 1000)});
    if (goals.size() == kGoalsMax) break;
  }
  if (goals.empty()) return;
  std::vector<std::uint32_t> who;
  std::vector<MovableGang> movable;
  for (std::uint32_t i = 0; i < s_.running.size(); ++i) {
    const RunningJob& job = s_.running[i];
    const bool may = stopped_[i] == 0 && !job.stopping && job.gangs.size() == 1 &&
                     may_be_moved(job) &&
                     s_.now - job.started >= Duration::from_seconds(policy_.min_run.value());
    if (!may) continue;
    const PlacedGang& gang = job.gangs.front();
    who.push_back(i);
    movable.push_back({{&gang.allocation, gang.host},
                       &job.request->roles[gang.role].options[gang.option].gang,
                       static_cast<std::int64_t>(lost_device_seconds(job) * 1000)});
  }
  if (movable.empty()) return;
  // What is kept for somebody is no room.
  const FleetView view = m_.reserved_->any() ? m_.reserved_->shadow() : m_.now_->view();
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
    enter_power(there, terms ? *terms : moved.terms.front());
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
  // It starts here now, not in the slot it was given before.
  std::erase_if(result_.reservations, [&](const Reservation& one) { return one.job == job.id; });
  result_.reservations.push_back(std::move(slot));
}

}  // namespace orrery
