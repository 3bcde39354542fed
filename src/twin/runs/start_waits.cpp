#include "twin/runs/start_waits.hpp"

#include <algorithm>
#include <utility>

namespace orrery {
namespace {

bool has_ranks_of(JobId job, NodeId node, const State& state) {
  const auto here = state.jobs_on(node);
  return std::ranges::find(here, job) != here.end();
}

}  // namespace

Duration StartWaits::begin(const StartRanks& action, StateToRead read, const RunProgress& progress,
                           const State& state) {
  Start& start = starts_[action.job.value()];
  if (action.epoch == 0 && !action.in_place) start.rings.clear();
  start.source = StateSource::kUnsaid;
  start.rest.reset();
  start.awaited = 0;
  Duration delay = action.delay;
  if (facts_->rules.costs) {
    delay += facts_->timing.launch;
    if (action.compile) delay += state.job(action.job).submission->prepare.compile;
    if (read == StateToRead::kNewestCopy) delay += begin_recovery(action, progress, state);
    if (action.epoch == 0) delay += stage_data(state.running(action.job), state);
  }
  if (start.awaited > 0) start.rest = delay;
  return delay;
}

Duration StartWaits::begin_recovery(const StartRanks& action, const RunProgress& progress,
                                    const State& state) {
  const RunningJob& placed = state.running(action.job);
  Duration rest = placed.request->restart;
  if (action.epoch > 0) return rest;
  Start& start = starts_[action.job.value()];
  if (progress.has_state()) {
    const bool near = start.peer_copy && !progress.newest_copy_wrong() &&
                      memory_survives(start, action.job, state);
    start.source = near ? StateSource::kPeers : StateSource::kStorage;
    ++(near ? recoveries_.from_peers : recoveries_.from_storage);
    if (Contention* shared = traffic_->contention_of(placed, state)) {
      const std::optional<Duration> alone = shared->time_to_load(placed, state);
      const MoveKind kind = near ? MoveKind::kFetch : MoveKind::kLoad;
      if (alone && shared->move_state(kind, placed, state, state.now())) {
        ++start.awaited;
        rest = rest - std::min(rest, *alone);
      }
    }
  }
  const bool ready =
      action.in_place == RestartKind::kWarmSpares && !rebooted(start, action.job, state);
  if (!ready) return rest;
  ++recoveries_.on_ready_nodes;
  return std::min(rest, facts_->timing.warm_restart.value_or(rest));
}

Duration StartWaits::stage_data(const RunningJob& placed, const State& state) {
  const std::vector<DataRequest>& data = placed.request->data;
  if (data.empty()) return {};
  Start& start = starts_[placed.id.value()];
  Contention* shared = traffic_->contention_of(placed, state);
  const NodeId first = placed.gangs.front().allocation.ranks.front().node;
  const std::uint32_t site = site_ordinal(*topology_, first);
  const bool fetched = (start.data_at & site_bit(site)) != 0;
  double alone = 0;
  for (std::size_t i = 0; i < data.size(); ++i) {
    const Staging staging =
        shared != nullptr ? shared->stage(placed, i, state.now()) : Staging::kNoStorage;
    if (staging == Staging::kMoving) ++start.awaited;
    if (staging != Staging::kNoStorage || data[i].site == site || fetched) continue;
    alone += transfer_of(data[i], site, *topology_).seconds;
  }
  start.data_at |= site_bit(site);
  return Duration::from_seconds(alone);
}

std::optional<Duration> StartWaits::bytes_arrived(JobId job) {
  Start& start = starts_[job.value()];
  if (--start.awaited > 0) return std::nullopt;
  return std::exchange(start.rest, std::nullopt);
}

void StartWaits::note_nodes(const RunningJob& placed, const State& state) {
  Start& start = starts_[placed.id.value()];
  start.rings.clear();
  if (!facts_->rules.costs) return;
  for (const PlacedGang& gang : placed.gangs) {
    std::vector<Seat>& ring = start.rings.emplace_back();
    ring.reserve(gang.allocation.ranks.size());
    for (const NodeDevices& at : gang.allocation.ranks) {
      ring.push_back({at.node, state.node(at.node).boot});
    }
  }
}

bool StartWaits::memory_survives(const Start& start, JobId id, const State& state) {
  const auto kept = [&](const Seat& seat) {
    return state.node(seat.node).boot == seat.boot && has_ranks_of(id, seat.node, state);
  };
  const auto whole = [&](const std::vector<Seat>& ring) {
    for (std::size_t i = 0; i < ring.size(); ++i) {
      if (!kept(ring[i]) && !kept(ring[(i + 1) % ring.size()])) return false;
    }
    return true;
  };
  return !start.rings.empty() && std::ranges::all_of(start.rings, whole);
}

bool StartWaits::rebooted(const Start& start, JobId id, const State& state) {
  const auto anew = [&](const Seat& seat) {
    return state.node(seat.node).boot != seat.boot && has_ranks_of(id, seat.node, state);
  };
  return std::ranges::any_of(
      start.rings, [&](const std::vector<Seat>& ring) { return std::ranges::any_of(ring, anew); });
}

}  // namespace orrery
