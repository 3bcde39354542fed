// Rounds: full passes choose the jobs that have a turn; passes between them fill what comes free.
#include <algorithm>
#include <bit>
#include <set>

#include "scheduler/pass/pass.hpp"
#include "scheduler/power/gang_power.hpp"
#include "scheduler/rounds/round_turns.hpp"
#include "scheduler/rounds/turn_ends.hpp"
#include "scheduler/tenants/queue_order.hpp"

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

const GangRequest& gang_of(const RoundJob& job, std::uint32_t option) {
  return job.job.request->roles.front().options[option].gang;
}

/// Devices that a gang takes from other jobs: all of its nodes if it is exclusive.
std::uint32_t devices_taken(const Topology& topology, const GangRequest& gang) {
  if (!gang.exclusive) return gang.devices;
  const std::uint32_t nodes = (gang.devices + gang.node_devices - 1) / gang.node_devices;
  return nodes * topology.node_devices_max(gang.type);
}

std::vector<std::uint32_t> free_by_type(const FleetView& view) {
  std::vector<std::uint32_t> free(view.topology().type_count());
  for (std::uint32_t t = 0; t < free.size(); ++t) {
    free[t] = view.free(Topology::root(), FleetTypeId(t)).devices;
  }
  return free;
}

}  // namespace

// Lists services first, then jobs of several gangs and shares of devices, each in the order of the
// policy.
std::vector<const WaitingJob*> Pass::without_turns() const {
  std::vector<std::pair<OrderKey, const WaitingJob*>> order;
  for (const WaitingJob& job : s_.waiting) {
    if (takes_turns(*job.request) || std::binary_search(held_.begin(), held_.end(), job.id)) {
      continue;
    }
    order.emplace_back(key_of(job, policy_, s_), &job);
  }
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    const bool first = a.second->request->kind == JobKind::kServe;
    const bool second = b.second->request->kind == JobKind::kServe;
    return first != second ? first : a.first < b.first;
  });
  const std::size_t count = std::min(order.size(), kRoundJobs);
  std::vector<const WaitingJob*> jobs;
  jobs.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    jobs.push_back(order[i].second);
  }
  return jobs;
}

// Running jobs that may not be stopped are left out.
std::vector<RoundJob> Pass::round_jobs() const {
  std::vector<RoundJob> jobs;
  for (std::uint32_t i = 0; i < s_.waiting.size(); ++i) {
    const WaitingJob& job = s_.waiting[i];
    const bool has_slot = std::binary_search(held_.begin(), held_.end(), job.id);
    if (takes_turns(*job.request) && !has_slot) jobs.push_back({job, i, std::nullopt});
  }
  keep_first(jobs, policy_, s_);
  const Duration least = kind_ == PassKind::kFull ? least_turn(s_, policy_) : Duration();
  for (std::uint32_t i = 0; i < s_.running.size(); ++i) {
    const RunningJob& job = s_.running[i];
    const bool leaves = job.stopping || stopped_[i] != 0;
    if (leaves || !takes_turns(*job.request) || turn_ends_from(job, s_, least) > s_.now) continue;
    jobs.push_back({as_waiting(job, s_.now), i, job.gangs.front().option});
  }
  return jobs;
}

// Jobs that take no turns go first and keep their devices. In a full pass those that find no room
// get devices of others at the end of their turns.
void Pass::run_rounds() {
  Refusals refusals;
  std::vector<const WaitingJob*> first;
  for (const WaitingJob* job : without_turns()) {
    FoundOrRefusal found = find(*job);
    share_power(*job, found);
    if (found) {
      start(*job, *std::move(found));
    } else {
      refusals.emplace(job->id, found.error());
      first.push_back(job);
    }
  }
  const std::vector<RoundJob> jobs = round_jobs();
  if (kind_ == PassKind::kFull) {
    begin_round(jobs, first);
  } else {
    fill(jobs);
  }
  wait_for_turns(refusals);
}

bool Pass::is_closed(const Found& found) const {
  const Instant end = end_of(found);
  return std::any_of(s_.closures.begin(), s_.closures.end(), [&](const Closure& closure) {
    if (closure.from >= end || closure.to <= s_.now) return false;
    return std::any_of(closure.nodes.begin(), closure.nodes.end(), [&](const NodeDevices& closed) {
      return std::any_of(found.gangs.begin(), found.gangs.end(), [&](const PlacedGang& gang) {
        const std::vector<NodeDevices>& ranks = gang.allocation.ranks;
        return std::any_of(ranks.begin(), ranks.end(),
                           [&](const NodeDevices& at) { return at.node == closed.node; });
      });
    });
  });
}

// If the place closes before the job would be done, a second search hides the nodes that close.
Pass::FoundOrRefusal Pass::by_turn(const FleetView& view, const WaitingJob& job,
                                   std::uint32_t option) {
  const GangRequest& gang = job.request->roles.front().options[option].gang;
  const auto place = [&](const FleetView& in) -> FoundOrRefusal {
    ++result_.placements;
    AllocationOrRefusal placed = m_.placer_.placer().place(in, gang, {.fit = policy_.node_fit});
    if (!placed) return tl::unexpected(placed.error());
    return with_terms(in, job, {PlacedGang{0, option, *std::move(placed), gang.host}});
  };
  FoundOrRefusal found = place(view);
  if (!found || !is_closed(*found)) return found;
  FleetOverlay open(view);
  for (const Closure& closure : s_.closures) {
    if (closure.to > s_.now && closure.from < end_of(*found)) open.hide(closure.nodes);
  }
  found = place(open.view());
  if (found && is_closed(*found)) {
    return tl::unexpected(Refusal{RejectionKind::kBusy, TopologyLevel::kFleet, 0});
  }
  return found;
}

void Pass::fill(std::span<const RoundJob> jobs) {
  const bool waits = std::any_of(jobs.begin(), jobs.end(),
                                 [](const RoundJob& job) { return !job.option.has_value(); });
  std::vector<std::uint32_t> free = free_by_type(m_.now_->view());
  const auto none = [](std::uint32_t devices) { return devices == 0; };
  if (!waits || std::all_of(free.begin(), free.end(), none)) return;
  const std::vector<Turn> turns =
      turns_of({s_, policy_, RoundPhase::kGoesOn, jobs, std::move(free)}, m_.shares_);
  std::set<GangRequest> no_room;
  std::vector<char> starts(jobs.size());
  for (const Turn& turn : turns) {
    const RoundJob& job = jobs[turn.job];
    const GangRequest& gang = gang_of(job, turn.option);
    if (job.option || starts[turn.job] != 0 || no_room.contains(gang)) continue;
    const FleetView now = m_.now_->view();
    if (now.free(Topology::root(), gang.type).devices < gang.devices) continue;
    const bool beside = m_.reserved_->any();
    FoundOrRefusal found =
        by_turn(beside ? m_.reserved_->beside(now, job.job.id, latest_end(job.job)) : now, job.job,
                turn.option);
    if (found) {
      start(s_.waiting[job.at], *std::move(found));
      starts[turn.job] = 1;
      continue;
    }
    result_.waiting.push_back({job.job.id, found.error()});
    if (found.error().kind == RejectionKind::kBusy && s_.closures.empty()) no_room.insert(gang);
  }
}

// Devices of jobs that may go on count as free until the turns are known. The power of jobs that do
// not go on is available to others, as are their devices.
void Pass::begin_round(std::span<const RoundJob> jobs, std::span<const WaitingJob* const> first) {
  Round round{jobs,
              FleetOverlay(m_.now_->view()),
              {},
              std::vector<std::size_t>(jobs.size()),
              std::vector<char>(jobs.size()),
              std::vector<char>(jobs.size()),
              {}};
  const std::optional<PowerBudget> power = power_;
  open_round(round);
  for (const WaitingJob* job : first) {
    if (job->request->roles.front().options.front().gang.share != kWholeDevice) continue;
    FoundOrRefusal found = find_in(round.after.view(), *job);
    if (found && !is_closed(*found)) take_place(round, {job, std::nullopt, *std::move(found)});
  }
  choose_turns(round);
  place_rest(round);
  power_ = power;
  end_turns(round);
  begin_turns(round);
}

void Pass::leave_devices(Round& round, const RunningJob& job) {
  give_back(round.after, std::span<const PlacedGang>(job.gangs));
  leave_power(job);
}

void Pass::open_round(Round& round) {
  for (std::uint32_t i = 0; i < s_.running.size(); ++i) {
    if (s_.running[i].stopping || stopped_[i] != 0) leave_devices(round, s_.running[i]);
  }
  // Jobs that move and have not left their devices yet keep their slots.
  for (const Reservation& slot : result_.reservations) {
    if (fits(round.after.view(), slot.gangs)) {
      take(round.after, std::span<const PlacedGang>(slot.gangs));
    }
  }
  for (const RoundJob& job : round.jobs) {
    if (job.option) leave_devices(round, s_.running[job.at]);
  }
}

// Each job is chosen for its first turn for which there are devices. Jobs chosen for the devices
// they have keep them; then the largest gangs are placed first.
void Pass::choose_turns(Round& round) {
  if (round.jobs.empty()) return;
  std::vector<std::uint32_t> left = free_by_type(round.after.view());
  round.turns = turns_of({s_, policy_, RoundPhase::kBegins, round.jobs, left}, m_.shares_);
  std::vector<char> chosen(round.jobs.size());
  std::vector<Turn> places;
  std::fill(round.turn_of.begin(), round.turn_of.end(), round.turns.size());
  for (std::size_t t = 0; t < round.turns.size(); ++t) {
    const Turn& turn = round.turns[t];
    const RoundJob& job = round.jobs[turn.job];
    const GangRequest& gang = gang_of(job, turn.option);
    const std::uint32_t devices = devices_taken(s_.fleet.topology(), gang);
    std::uint32_t& free = left[gang.type.value()];
    if (chosen[turn.job] != 0 || free < devices) continue;
    free -= devices;
    chosen[turn.job] = 1;
    round.turn_of[turn.job] = t;
    if (job.option == turn.option && may_go_on(round, turn.job)) {
      go_on(round, turn.job);
    } else {
      places.push_back(turn);
    }
  }
  std::stable_sort(places.begin(), places.end(), [&](const Turn& a, const Turn& b) {
    return gang_of(round.jobs[a.job], a.option).devices >
           gang_of(round.jobs[b.job], b.option).devices;
  });
  std::set<GangRequest> no_room;
  for (const Turn& turn : places) {
    const GangRequest& gang = gang_of(round.jobs[turn.job], turn.option);
    if (!no_room.contains(gang) && !place_turn(round, turn)) no_room.insert(gang);
  }
}

void Pass::go_on(Round& round, std::uint32_t job) {
  const RunningJob& running = s_.running[round.jobs[job].at];
  take(round.after, std::span<const PlacedGang>(running.gangs));
  for (std::size_t g = 0; g < running.gangs.size(); ++g) {
    enter_power(running.gangs[g], terms_now(running, g));
  }
  round.has_place[job] = 1;
  round.goes_on[job] = 1;
}

bool Pass::may_go_on(const Round& round, std::uint32_t job) const {
  const RunningJob& running = s_.running[round.jobs[job].at];
  if (!fits(round.after.view(), running.gangs)) return false;
  if (!power_) return true;
  PowerBudget budget = *power_;
  for (std::size_t g = 0; g < running.gangs.size(); ++g) {
    const Watts draw = terms_now(running, g).draw;
    if (budget.try_add(*s_.caps, draws_of_gang(budget.tree(), running.gangs[g], draw))) {
      return false;
    }
  }
  return true;
}

void Pass::take_place(Round& round, RoundPlace place) {
  take(round.after, std::span<const PlacedGang>(place.found.gangs));
  for (std::size_t g = 0; g < place.found.gangs.size(); ++g) {
    enter_power(place.found.gangs[g], place.found.terms[g]);
  }
  round.places.push_back(std::move(place));
}

void Pass::take_turn(Round& round, const Turn& turn, Found found) {
  const RoundJob& job = round.jobs[turn.job];
  round.has_place[turn.job] = 1;
  if (job.option) {
    take_place(round, {&job.job, job.at, std::move(found)});
  } else {
    take_place(round, {&s_.waiting[job.at], std::nullopt, std::move(found)});
  }
}

bool Pass::place_turn(Round& round, const Turn& turn) {
  const RoundJob& job = round.jobs[turn.job];
  FoundOrRefusal found = by_turn(round.after.view(), job.job, turn.option);
  if (!found) {
    if (!job.option) result_.waiting.push_back({job.job.id, found.error()});
    return make_place(round, turn, found.error());
  }
  take_turn(round, turn, *std::move(found));
  return true;
}

// Lists jobs with later turns from the last one on; if room is lacking, also jobs with earlier
// turns: they find room elsewhere, since there are devices enough for all chosen jobs.
std::vector<std::uint32_t> Pass::who_makes_place(const Round& round, const Turn& turn,
                                                 const Refusal& refusal) const {
  const FleetTypeId type = gang_of(round.jobs[turn.job], turn.option).type;
  const bool busy = refusal.kind == RejectionKind::kBusy;
  std::vector<std::uint32_t> who;
  for (std::uint32_t i = 0; i < round.jobs.size(); ++i) {
    if (round.goes_on[i] == 0) continue;
    const bool helps = !busy || gang_of(round.jobs[i], *round.jobs[i].option).type == type;
    if (helps && (busy || round.turn_of[i] > round.turn_of[turn.job])) who.push_back(i);
  }
  std::sort(who.begin(), who.end(),
            [&](std::uint32_t a, std::uint32_t b) { return round.turn_of[a] > round.turn_of[b]; });
  return who;
}

// Takes back jobs that were to go on, twice as many at each try, until there is a place; those that
// are not in its way go on after all.
bool Pass::make_place(Round& round, const Turn& turn, const Refusal& refusal) {
  if (refusal.kind != RejectionKind::kBusy && refusal.kind != RejectionKind::kPower) return false;
  const RoundJob& job = round.jobs[turn.job];
  const std::vector<std::uint32_t> who = who_makes_place(round, turn, refusal);
  FoundOrRefusal found = tl::unexpected(refusal);
  std::size_t taken = 0;
  for (std::size_t batch = 1; taken < who.size() && !found; batch *= 2) {
    for (const std::size_t end = std::min(who.size(), taken + batch); taken < end; ++taken) {
      leave_devices(round, s_.running[round.jobs[who[taken]].at]);
      round.goes_on[who[taken]] = round.has_place[who[taken]] = 0;
    }
    found = by_turn(round.after.view(), job.job, turn.option);
  }
  const bool placed = found.has_value();
  if (placed) take_turn(round, turn, *std::move(found));
  for (; taken > 0; --taken) {
    if (may_go_on(round, who[taken - 1])) go_on(round, who[taken - 1]);
  }
  return placed;
}

// What is left goes to jobs without a place, in the order of turns, by any of their options. A
// running job stays where it is if it can.
void Pass::place_rest(Round& round) {
  std::set<GangRequest> no_room;
  for (const Turn& turn : round.turns) {
    const RoundJob& job = round.jobs[turn.job];
    if (round.has_place[turn.job] != 0) continue;
    if (job.option && may_go_on(round, turn.job)) {
      go_on(round, turn.job);
      continue;
    }
    const GangRequest& gang = gang_of(job, turn.option);
    const FleetView after = round.after.view();
    if (no_room.contains(gang)) continue;
    if (after.free(Topology::root(), gang.type).devices < gang.devices) continue;
    FoundOrRefusal found = by_turn(after, job.job, turn.option);
    if (!found) {
      if (!job.option) result_.waiting.push_back({job.job.id, found.error()});
      if (found.error().kind == RejectionKind::kBusy && s_.closures.empty()) no_room.insert(gang);
      continue;
    }
    take_turn(round, turn, *std::move(found));
  }
}

void Pass::end_turns(const Round& round) {
  for (std::uint32_t i = 0; i < round.jobs.size(); ++i) {
    const RoundJob& job = round.jobs[i];
    if (!job.option || round.goes_on[i] != 0) continue;
    const RunningJob& running = s_.running[job.at];
    JobId in_favour_of = running.id;
    for (const RoundPlace& place : round.places) {
      if (!overlap(place.found.gangs, running.gangs)) continue;
      in_favour_of = place.job->id;
      break;
    }
    stopped_[job.at] = 1;
    result_.decisions.emplace_back(
        PreemptJob{running.id, in_favour_of, lost_device_seconds(running)});
  }
}

// Whether a job can start at once at its planned clocks: jobs that leave still draw power now.
bool Pass::starts_in_full(const WaitingJob& job, Found& found) const {
  const FleetView now = m_.now_->view();
  if (!fits(now, found.gangs)) return false;
  if (!power_) return true;
  FoundOrRefusal again = with_terms(now, job, found.gangs);
  if (!again) return false;
  for (std::size_t g = 0; g < found.terms.size(); ++g) {
    if (again->terms[g].clock < found.terms[g].clock) return false;
  }
  found = *std::move(again);
  return true;
}

// Jobs whose devices are free start; the others, and those that move, get a slot on them.
void Pass::begin_turns(Round& round) {
  for (RoundPlace& place : round.places) {
    if (!place.moves && starts_in_full(*place.job, place.found)) {
      start(*place.job, std::move(place.found));
      continue;
    }
    Reservation slot{place.job->id, s_.now, std::move(place.found.gangs)};
    keep(slot);
    for (const PlacedGang& gang : slot.gangs) keep_from_others(gang);
    result_.reservations.push_back(std::move(slot));
    if (place.moves) continue;
    hold(place.job->id);
    wait(*place.job, {RejectionKind::kBusy, TopologyLevel::kFleet, 0});
  }
}

// Refusals by turn are in result_.waiting: the first one of each job is reported, in the order of
// the situation. For a job with a slot the last entry is reported.
void Pass::wait_for_turns(const Refusals& refusals) {
  Refusals why = refusals;
  std::vector<StillWaits> with_slot;
  std::set<JobId> told;
  for (auto it = result_.waiting.rbegin(); it != result_.waiting.rend(); ++it) {
    const bool has_slot = std::binary_search(held_.begin(), held_.end(), it->job);
    if (!has_slot) why.insert_or_assign(it->job, it->refusal);
    if (has_slot && told.insert(it->job).second) with_slot.push_back(*it);
  }
  result_.waiting.assign(with_slot.rbegin(), with_slot.rend());
  std::vector<JobId> started;
  started.reserve(starts_.size());
  for (const Start& start : starts_) started.push_back(start.job->id);
  std::sort(started.begin(), started.end());
  for (const WaitingJob& job : s_.waiting) {
    if (std::binary_search(started.begin(), started.end(), job.id)) continue;
    if (std::binary_search(held_.begin(), held_.end(), job.id)) continue;
    const auto found = why.find(job.id);
    wait(job, found != why.end() ? found->second
                                 : Refusal{RejectionKind::kBusy, TopologyLevel::kFleet, 0});
  }
}

}  // namespace orrery
