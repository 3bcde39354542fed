// What a restart waits for: nodes that have to be made ready, and the job's state, from storage or
// from the memory of its own nodes.
//
// A copy in peers' memory is a second copy of the checkpoint in storage: the nodes of each gang
// form a ring, and each keeps its own part and that of the node before it.
#include <algorithm>

#include "twin/world/world.hpp"

namespace orrery {
namespace {

bool has_ranks_on(NodeId node, JobId job, const State& state) {
  const auto here = state.jobs_on(node);
  return std::ranges::find(here, job) != here.end();
}

}  // namespace

void World::note_seats(Run& run, const RunningJob& placed, const State& state) {
  run.seats.clear();
  run.memory_wrong = false;
  if (!facts_.rules.costs) return;
  for (const PlacedGang& gang : placed.gangs) {
    std::vector<Seat>& ring = run.seats.emplace_back();
    ring.reserve(gang.allocation.ranks.size());
    for (const NodeDevices& at : gang.allocation.ranks) {
      ring.push_back({at.node, state.node(at.node).boot});
    }
  }
}

bool World::memory_survives(const Run& run, JobId job, const State& state) {
  const auto kept = [&](const Seat& seat) {
    return state.node(seat.node).boot == seat.boot && has_ranks_on(seat.node, job, state);
  };
  const auto whole = [&](const std::vector<Seat>& ring) {
    for (std::size_t i = 0; i < ring.size(); ++i) {
      if (!kept(ring[i]) && !kept(ring[(i + 1) % ring.size()])) return false;
    }
    return true;
  };
  return !run.seats.empty() && std::ranges::all_of(run.seats, whole);
}

bool World::rebooted(const Run& run, JobId job, const State& state) {
  const auto anew = [&](const Seat& seat) {
    return state.node(seat.node).boot != seat.boot && has_ranks_on(seat.node, job, state);
  };
  return std::ranges::any_of(
      run.seats, [&](const std::vector<Seat>& ring) { return std::ranges::any_of(ring, anew); });
}

Duration World::begin_recovery(Run& run, const StartRanks& action, const State& state) {
  const RunningJob& placed = state.running(action.job);
  Duration rest = placed.request->restart;
  if (action.epoch > 0) return rest;
  if (run.safe_left < run.job.work) {
    const bool near =
        run.job.peer_copy && !run.memory_wrong && memory_survives(run, action.job, state);
    run.source = near ? StateSource::kPeers : StateSource::kStorage;
    ++(near ? recoveries_.from_peers : recoveries_.from_storage);
    if (Contention* shared = contention(placed, state)) {
      const std::optional<Duration> alone = shared->time_to_load(placed, state);
      const MoveKind kind = near ? MoveKind::kFetch : MoveKind::kLoad;
      if (alone && shared->move_state(kind, placed, state, state.now())) {
        ++run.awaited;
        rest = rest - std::min(rest, *alone);
      }
    }
  }
  if (action.in_place != RestartKind::kWarmSpares || rebooted(run, action.job, state)) return rest;
  ++recoveries_.on_ready_nodes;
  return std::min(rest, facts_.timing.warm_restart.value_or(rest));
}

}  // namespace orrery
