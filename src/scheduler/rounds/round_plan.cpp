#include "scheduler/rounds/round_plan.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <utility>

#include "scheduler/pass/closures.hpp"

namespace orrery {
namespace {

/// Whether a gang could be taken from the view as it is placed.
bool fits(const FleetView& view, std::span<const PlacedGang> gangs) {
  const auto is_free = [&](const NodeDevices& at) {
    return (view.node(at.node).free_mask & at.devices) == at.devices;
  };
  return std::all_of(gangs.begin(), gangs.end(), [&](const PlacedGang& gang) {
    const Allocation& on = gang.allocation;
    const auto hosted = [&](const NodeDevices& at) {
      const HostResources& host = view.topology().group(at.node).host;
      const auto ranks = static_cast<std::uint32_t>(std::popcount(at.devices));
      return is_free(at) && host_ranks(host, view.node(at.node), gang.host) >= ranks;
    };
    return std::all_of(on.ranks.begin(), on.ranks.end(), hosted) &&
           std::all_of(on.idle.begin(), on.idle.end(), is_free);
  });
}

bool overlap(std::span<const PlacedGang> some, std::span<const PlacedGang> others) {
  std::map<NodeId, std::uint64_t> taken;
  for (const PlacedGang& gang : some) {
    for (const auto* list : {&gang.allocation.ranks, &gang.allocation.idle}) {
      for (const NodeDevices& at : *list) taken[at.node] |= at.devices;
    }
  }
  const auto is_taken = [&](const NodeDevices& at) {
    const auto found = taken.find(at.node);
    return found != taken.end() && (found->second & at.devices) != 0;
  };
  return std::any_of(others.begin(), others.end(), [&](const PlacedGang& gang) {
    const Allocation& on = gang.allocation;
    return std::any_of(on.ranks.begin(), on.ranks.end(), is_taken) ||
           std::any_of(on.idle.begin(), on.idle.end(), is_taken);
  });
}

/// Devices that a gang takes from other jobs: all of its nodes if it is exclusive.
std::uint32_t devices_taken(const Topology& topology, const GangRequest& gang) {
  if (!gang.exclusive) return gang.devices;
  const std::uint32_t nodes = (gang.devices + gang.node_devices - 1) / gang.node_devices;
  return nodes * topology.node_devices_max(gang.type);
}

}  // namespace

std::vector<std::uint32_t> free_by_type(const FleetView& view) {
  std::vector<std::uint32_t> free(view.topology().type_count());
  for (std::uint32_t t = 0; t < free.size(); ++t) {
    free[t] = view.free(Topology::root(), FleetTypeId(t)).devices;
  }
  return free;
}

RoundPlan::RoundPlan(PassContext& pass, StartSearch& search, ThroughputShares& shares,
                     std::span<const RoundJob> jobs)
    : pass_(pass),
      s_(pass.situation),
      policy_(pass.policy),
      search_(search),
      shares_(shares),
      jobs_(jobs),
      after_(pass.fleet.now()),
      states_(jobs.size()) {}

void RoundPlan::begin(std::span<const WaitingJob* const> first) {
  const std::optional<PowerBudget> power = pass_.power.saved();
  open();
  for (const WaitingJob* job : first) {
    if (job->request->roles.front().options.front().gang.share != kWholeDevice) continue;
    StartOrRefusal found = search_.in(after_.view(), *job);
    if (found && !is_closed(found->gangs, s_, pass_.end_of(*found))) {
      take_place({job, false, *std::move(found)});
    }
  }
  choose_turns();
  place_rest();
  pass_.power.restore(power);
  end_turns();
  begin_turns();
}

void RoundPlan::leave_devices(const RunningJob& job) {
  give_back(after_, std::span<const PlacedGang>(job.gangs));
  pass_.power.leave(job);
}

void RoundPlan::open() {
  for (std::uint32_t i = 0; i < s_.running.size(); ++i) {
    if (s_.running[i].stopping || pass_.is_decided(i)) leave_devices(s_.running[i]);
  }
  // Jobs that move and have not left their devices yet keep their reservations.
  for (const Reservation& slot : pass_.result.reservations) {
    if (fits(after_.view(), slot.gangs)) {
      take(after_, std::span<const PlacedGang>(slot.gangs));
    }
  }
  for (const RoundJob& job : jobs_) {
    if (job.option) leave_devices(s_.running[job.at]);
  }
}

// Each job is chosen for its first turn for which there are devices. Jobs chosen for the devices
// they have keep them; then the largest gangs are placed first.
void RoundPlan::choose_turns() {
  if (jobs_.empty()) return;
  std::vector<std::uint32_t> left = free_by_type(after_.view());
  turns_ = turns_of({s_, policy_, RoundPhase::kBegins, jobs_, left}, shares_);
  std::vector<char> chosen(jobs_.size());
  std::vector<Turn> places;
  for (JobState& state : states_) state.turn = turns_.size();
  for (std::size_t t = 0; t < turns_.size(); ++t) {
    const Turn& turn = turns_[t];
    const RoundJob& job = jobs_[turn.job];
    const GangRequest& gang = gang_of(turn);
    const std::uint32_t devices = devices_taken(s_.fleet.topology(), gang);
    std::uint32_t& free = left[gang.type.value()];
    if (chosen[turn.job] != 0 || free < devices) continue;
    free -= devices;
    chosen[turn.job] = 1;
    states_[turn.job].turn = t;
    if (job.option == turn.option && may_go_on(turn.job)) {
      go_on(turn.job);
    } else {
      places.push_back(turn);
    }
  }
  std::stable_sort(places.begin(), places.end(), [&](const Turn& a, const Turn& b) {
    return gang_of(a).devices > gang_of(b).devices;
  });
  std::set<GangRequest> no_room;
  for (const Turn& turn : places) {
    const GangRequest& gang = gang_of(turn);
    if (!no_room.contains(gang) && !place_turn(turn)) no_room.insert(gang);
  }
}

void RoundPlan::go_on(std::uint32_t job) {
  const RunningJob& running = s_.running[jobs_[job].at];
  take(after_, std::span<const PlacedGang>(running.gangs));
  pass_.power.enter(running);
  states_[job].has_place = true;
  states_[job].goes_on = true;
}

bool RoundPlan::may_go_on(std::uint32_t job) const {
  const RunningJob& running = s_.running[jobs_[job].at];
  return fits(after_.view(), running.gangs) &&
         (!pass_.power.limited() || pass_.power.holds(running));
}

void RoundPlan::take_place(Place place) {
  take(after_, std::span<const PlacedGang>(place.start.gangs));
  pass_.power.enter(place.start.gangs, place.start.terms);
  places_.push_back(std::move(place));
}

void RoundPlan::take_turn(const Turn& turn, PlannedStart start) {
  const RoundJob& job = jobs_[turn.job];
  states_[turn.job].has_place = true;
  if (job.option) {
    take_place({&job.job, true, std::move(start)});
  } else {
    take_place({&s_.waiting[job.at], false, std::move(start)});
  }
}

bool RoundPlan::place_turn(const Turn& turn) {
  const RoundJob& job = jobs_[turn.job];
  StartOrRefusal found = search_.by_option(after_.view(), job.job, turn.option);
  if (!found) {
    if (!job.option) pass_.result.waiting.push_back({job.job.id, found.error().refusal});
    return make_place(turn, found.error().refusal);
  }
  take_turn(turn, *std::move(found));
  return true;
}

// Lists jobs with later turns from the last one on; if room is lacking, also jobs with earlier
// turns: they find room elsewhere, since there are devices enough for all chosen jobs.
std::vector<std::uint32_t> RoundPlan::who_makes_place(const Turn& turn,
                                                      const Refusal& refusal) const {
  const FleetTypeId type = gang_of(turn).type;
  const bool busy = refusal.kind == RejectionKind::kBusy;
  std::vector<std::uint32_t> who;
  for (std::uint32_t i = 0; i < jobs_.size(); ++i) {
    if (!states_[i].goes_on) continue;
    const bool helps = !busy || gang_of({i, *jobs_[i].option}).type == type;
    if (helps && (busy || states_[i].turn > states_[turn.job].turn)) who.push_back(i);
  }
  std::sort(who.begin(), who.end(),
            [&](std::uint32_t a, std::uint32_t b) { return states_[a].turn > states_[b].turn; });
  return who;
}

// Takes back jobs that were to go on, twice as many at each try, until there is a place; those that
// are not in its way go on after all.
bool RoundPlan::make_place(const Turn& turn, const Refusal& refusal) {
  if (refusal.kind != RejectionKind::kBusy && refusal.kind != RejectionKind::kPower) return false;
  const RoundJob& job = jobs_[turn.job];
  const std::vector<std::uint32_t> who = who_makes_place(turn, refusal);
  StartOrRefusal found = tl::unexpected(StartRefusal{refusal});
  std::size_t taken = 0;
  for (std::size_t batch = 1; taken < who.size() && !found; batch *= 2) {
    for (const std::size_t end = std::min(who.size(), taken + batch); taken < end; ++taken) {
      leave_devices(s_.running[jobs_[who[taken]].at]);
      states_[who[taken]].goes_on = states_[who[taken]].has_place = false;
    }
    found = search_.by_option(after_.view(), job.job, turn.option);
  }
  const bool placed = found.has_value();
  if (placed) take_turn(turn, *std::move(found));
  for (; taken > 0; --taken) {
    if (may_go_on(who[taken - 1])) go_on(who[taken - 1]);
  }
  return placed;
}

// What is left goes to jobs without a place, in the order of turns, by any of their options. A
// running job stays where it is if it can.
void RoundPlan::place_rest() {
  std::set<GangRequest> no_room;
  for (const Turn& turn : turns_) {
    const RoundJob& job = jobs_[turn.job];
    if (states_[turn.job].has_place) continue;
    if (job.option && may_go_on(turn.job)) {
      go_on(turn.job);
      continue;
    }
    const GangRequest& gang = gang_of(turn);
    const FleetView after = after_.view();
    if (no_room.contains(gang)) continue;
    if (after.free(Topology::root(), gang.type).devices < gang.devices) continue;
    StartOrRefusal found = search_.by_option(after, job.job, turn.option);
    if (!found) {
      if (!job.option) pass_.result.waiting.push_back({job.job.id, found.error().refusal});
      const bool busy = found.error().refusal.kind == RejectionKind::kBusy;
      if (busy && s_.closures.empty()) no_room.insert(gang);
      continue;
    }
    take_turn(turn, *std::move(found));
  }
}

void RoundPlan::end_turns() {
  for (std::uint32_t i = 0; i < jobs_.size(); ++i) {
    const RoundJob& job = jobs_[i];
    if (!job.option || states_[i].goes_on) continue;
    const RunningJob& running = s_.running[job.at];
    JobId in_favour_of = running.id;
    for (const Place& place : places_) {
      if (!overlap(place.start.gangs, running.gangs)) continue;
      in_favour_of = place.job->id;
      break;
    }
    pass_.preempt(job.at, in_favour_of);
  }
}

// Whether a job can start at once at its planned clocks: jobs that leave still draw power now.
bool RoundPlan::starts_in_full(const WaitingJob& job, PlannedStart& start) const {
  const FleetView now = pass_.fleet.now();
  if (!fits(now, start.gangs)) return false;
  if (!pass_.power.limited()) return true;
  StartOrRefusal again = search_.with_terms(now, job, start.gangs);
  if (!again) return false;
  for (std::size_t g = 0; g < start.terms.size(); ++g) {
    if (again->terms[g].clock < start.terms[g].clock) return false;
  }
  start = *std::move(again);
  return true;
}

// Jobs whose devices are free start; the others, and those that move, get a reservation of them.
void RoundPlan::begin_turns() {
  for (Place& place : places_) {
    if (!place.moves && starts_in_full(*place.job, place.start)) {
      pass_.start(*place.job, std::move(place.start));
      continue;
    }
    pass_.reserve_now({place.job->id, s_.now, std::move(place.start.gangs)});
    if (place.moves) continue;
    pass_.pass_over(place.job->id);
    pass_.wait(*place.job, {RejectionKind::kBusy, TopologyLevel::kFleet, 0});
  }
}

}  // namespace orrery
