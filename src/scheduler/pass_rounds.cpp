// Rounds: full passes say whose turn it is, passes between them fill what comes free.
#include <algorithm>
#include <set>

#include "scheduler/pass.hpp"
#include "scheduler/round_turns.hpp"

namespace orrery {
namespace {

bool all_free(const FleetView& view, std::span<const PlacedGang> gangs) {
  return std::all_of(gangs.begin(), gangs.end(), [&](const PlacedGang& gang) {
    return std::all_of(gang.allocation.ranks.begin(), gang.allocation.ranks.end(),
                       [&](const NodeDevices& at) {
                         return (view.node(at.node).free_mask & at.devices) == at.devices;
                       });
  });
}

bool overlap(const PlacedGang& a, const PlacedGang& b) {
  return std::any_of(
      a.allocation.ranks.begin(), a.allocation.ranks.end(), [&](const NodeDevices& one) {
        return std::any_of(b.allocation.ranks.begin(), b.allocation.ranks.end(),
                           [&](const NodeDevices& other) {
                             return one.node == other.node && (one.devices & other.devices) != 0;
                           });
      });
}

const GangRequest& gang_of(const RoundJob& job, std::uint32_t option) {
  return job.job.request->roles.front().options[option].gang;
}

std::vector<std::uint32_t> free_by_type(const FleetView& view) {
  std::vector<std::uint32_t> free(view.topology().type_count());
  for (std::uint32_t t = 0; t < free.size(); ++t) {
    free[t] = view.free(Topology::root(), FleetTypeId(t)).devices;
  }
  return free;
}

using Chosen = std::vector<std::optional<std::uint32_t>>;

/// By job, the option of its first turn for which there are devices; `chosen` already has those of
/// jobs whose devices are not in `left`.
Chosen choose(std::span<const RoundJob> jobs, std::span<const Turn> turns, Chosen chosen,
              std::vector<std::uint32_t> left) {
  for (const Turn& turn : turns) {
    const GangRequest& gang = gang_of(jobs[turn.job], turn.option);
    std::uint32_t& free = left[gang.type.value()];
    if (chosen[turn.job] || free < gang.devices) continue;
    free -= gang.devices;
    chosen[turn.job] = turn.option;
  }
  return chosen;
}

/// Jobs that are to start or to move, the largest first, else in the order of their turns.
std::vector<std::uint32_t> to_place(std::span<const RoundJob> jobs, std::span<const Turn> turns,
                                    const Chosen& chosen) {
  std::vector<std::uint32_t> list;
  for (const Turn& turn : turns) {
    const bool goes = chosen[turn.job] == turn.option && jobs[turn.job].option != turn.option;
    if (goes) list.push_back(turn.job);
  }
  std::stable_sort(list.begin(), list.end(), [&](std::uint32_t a, std::uint32_t b) {
    return gang_of(jobs[a], *chosen[a]).devices > gang_of(jobs[b], *chosen[b]).devices;
  });
  return list;
}

}  // namespace

std::vector<RoundJob> Pass::round_jobs() {
  std::vector<RoundJob> jobs;
  for (std::uint32_t i = 0; i < s_.waiting.size(); ++i) {
    const WaitingJob& job = s_.waiting[i];
    const bool has_slot = std::binary_search(held_.begin(), held_.end(), job.id);
    if (takes_turns(*job.request) && !has_slot) jobs.push_back({job, i, std::nullopt});
  }
  for (std::uint32_t i = 0; i < s_.running.size(); ++i) {
    const RunningJob& job = s_.running[i];
    if (!takes_turns(*job.request) || job.stopping) continue;
    jobs.push_back({as_waiting(job, s_.now), i, job.gangs.front().option});
  }
  return jobs;
}

// What is free, and what those hold who take turns or leave.
std::vector<std::uint32_t> Pass::round_devices() const {
  std::vector<std::uint32_t> devices = free_by_type(s_.fleet);
  for (const RunningJob& job : s_.running) {
    if (!takes_turns(*job.request) && !job.stopping) continue;
    for (const PlacedGang& gang : job.gangs) {
      const GangRequest& has = job.request->roles[gang.role].options[gang.option].gang;
      devices[has.type.value()] += has.devices;
    }
  }
  return devices;
}

// Who takes no turns goes first where there is room, in the order in which they came, and stays.
void Pass::run_rounds() {
  for (const WaitingJob& job : s_.waiting) {
    const bool has_slot = std::binary_search(held_.begin(), held_.end(), job.id);
    if (takes_turns(*job.request) || has_slot) continue;
    FoundOrRefusal found = find(job);
    if (found) {
      start(job, *std::move(found));
    } else {
      wait(job, found.error());
    }
  }
  const std::vector<RoundJob> jobs = round_jobs();
  if (jobs.empty()) return;
  const bool begins = kind_ == PassKind::kFull;
  const RoundPhase phase = begins ? RoundPhase::kBegins : RoundPhase::kGoesOn;
  const FleetView view = m_.reserved_->any() ? m_.reserved_->shadow() : m_.now_->view();
  const std::vector<Turn> turns =
      turns_of({s_, policy_, phase, jobs, round_devices(), free_by_type(view)}, m_.shares_);
  if (begins) {
    begin_round(jobs, turns);
  } else {
    fill(jobs, turns);
  }
}

Pass::FoundOrRefusal Pass::by_turn(const FleetView& view, const WaitingJob& job,
                                   std::uint32_t option) {
  const GangRequest& gang = job.request->roles.front().options[option].gang;
  ++result_.placements;
  AllocationOrRefusal placed = m_.placer_.placer().place(view, gang, {.fit = policy_.node_fit});
  if (!placed) return tl::unexpected(placed.error());
  return with_terms(view, job, {PlacedGang{0, option, *std::move(placed), gang.host}});
}

void Pass::fill(std::span<const RoundJob> jobs, std::span<const Turn> turns) {
  std::set<GangRequest> no_room;
  std::vector<char> starts(jobs.size());
  for (const Turn& turn : turns) {
    const RoundJob& job = jobs[turn.job];
    const GangRequest& gang = gang_of(job, turn.option);
    if (job.option || starts[turn.job] != 0 || no_room.contains(gang)) continue;
    const FleetView view = m_.reserved_->any() ? m_.reserved_->shadow() : m_.now_->view();
    FoundOrRefusal found = by_turn(view, job.job, turn.option);
    if (found) {
      start(s_.waiting[job.at], *std::move(found));
      starts[turn.job] = 1;
    } else if (found.error().kind == RejectionKind::kBusy) {
      no_room.insert(gang);
    }
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (jobs[i].option || starts[i] != 0) continue;
    wait(s_.waiting[jobs[i].at], {RejectionKind::kBusy, TopologyLevel::kFleet, 0});
  }
}

// Who goes on as it is keeps its devices, and the others find places on the rest. What those are on
// who have run for less than min_run, or write no checkpoints, and what slots keep is nobody
// else's.
void Pass::begin_round(std::span<const RoundJob> jobs, std::span<const Turn> turns) {
  FleetOverlay after(m_.now_->view());
  for (const RunningJob& job : s_.running) {
    if (job.stopping) give_back(after, std::span<const PlacedGang>(job.gangs));
  }
  for (const Reservation& slot : result_.reservations) {
    take(after, std::span<const PlacedGang>(slot.gangs));
  }
  Round round{jobs, std::vector<char>(jobs.size()), {}};
  Chosen chosen(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (!jobs[i].option) continue;
    const RunningJob& job = s_.running[jobs[i].at];
    round.goes_on[i] = !may_end_turn(job);
    if (round.goes_on[i] != 0) chosen[i] = jobs[i].option;
    if (round.goes_on[i] == 0) give_back(after, std::span<const PlacedGang>(job.gangs));
  }
  chosen = choose(jobs, turns, std::move(chosen), free_by_type(after.view()));
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (!jobs[i].option || round.goes_on[i] != 0 || chosen[i] != jobs[i].option) continue;
    round.goes_on[i] = 1;
    take(after, std::span<const PlacedGang>(s_.running[jobs[i].at].gangs));
  }
  for (const std::uint32_t i : to_place(jobs, turns, chosen)) {
    FoundOrRefusal found = by_turn(after.view(), jobs[i].job, *chosen[i]);
    if (!found) continue;
    take(after, std::span<const PlacedGang>(found->gangs));
    round.places.push_back({i, *std::move(found)});
  }
  end_turns(round, after.view());
  begin_turns(round);
}

bool Pass::may_end_turn(const RunningJob& job) const {
  return job.checkpoint != Duration::max() &&
         s_.now - job.started >= Duration::from_seconds(policy_.min_run.value());
}

// Whose devices nobody wants runs on. A job that moves waits until it has stopped.
void Pass::end_turns(Round& round, const FleetView& after) {
  std::vector<char> moves(round.jobs.size());
  for (const RoundPlace& place : round.places) moves[place.job] = 1;
  for (std::size_t i = 0; i < round.jobs.size(); ++i) {
    const RoundJob& job = round.jobs[i];
    if (!job.option || round.goes_on[i] != 0) continue;
    const RunningJob& running = s_.running[job.at];
    if (moves[i] == 0 && all_free(after, running.gangs)) continue;
    JobId in_favour_of = running.id;
    for (RoundPlace& place : round.places) {
      if (!overlap(place.found.gangs.front(), running.gangs.front())) continue;
      in_favour_of = round.jobs[place.job].job.id;
      break;
    }
    stopped_[job.at] = 1;
    result_.decisions.emplace_back(
        PreemptJob{running.id, in_favour_of, lost_device_seconds(running)});
  }
}

// Those whose devices are free start; the others have a slot on them.
void Pass::begin_turns(Round& round) {
  std::vector<char> has_place(round.jobs.size());
  for (RoundPlace& place : round.places) {
    const RoundJob& turn = round.jobs[place.job];
    has_place[place.job] = 1;
    if (turn.option) continue;
    const WaitingJob& job = s_.waiting[turn.at];
    if (all_free(m_.now_->view(), place.found.gangs)) {
      start(job, std::move(place.found));
      continue;
    }
    Reservation slot{job.id, s_.now, std::move(place.found.gangs)};
    keep(slot);
    for (const PlacedGang& gang : slot.gangs) keep_from_others(gang);
    result_.reservations.push_back(std::move(slot));
    hold(job.id);
  }
  for (std::size_t i = 0; i < round.jobs.size(); ++i) {
    if (round.jobs[i].option || has_place[i] != 0) continue;
    wait(s_.waiting[round.jobs[i].at], {RejectionKind::kBusy, TopologyLevel::kFleet, 0});
  }
}

}  // namespace orrery
