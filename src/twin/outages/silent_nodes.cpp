#include "twin/outages/silent_nodes.hpp"

#include <algorithm>
#include <utility>

#include "agent/launch_plan.hpp"

namespace orrery {
namespace {

bool has_ranks_on(const RunningJob& placed, NodeId node) {
  return std::ranges::any_of(placed.gangs, [node](const PlacedGang& gang) {
    return std::ranges::any_of(gang.allocation.ranks,
                               [node](const NodeDevices& at) { return at.node == node; });
  });
}

/// Whether control looks at a node's heartbeats.
bool watched(NodeHealth health) {
  return health == NodeHealth::kReady || health == NodeHealth::kSuspect ||
         health == NodeHealth::kDraining;
}

/// Whether the ranks of the job end with its lease; those of a job that has ended always do.
bool ends_with_lease(const State& state, JobId id) {
  return state.job(id).submission == nullptr || lease_of(state, id).kind == Lease::Kind::kBinding;
}

}  // namespace

void SilentNodes::fall_silent(NodeId node, const Fault& fault) {
  if (keep_away(node, fault.over_at())) return;
  const Silence silence{fault.at, fault.over_at(), ++silences_};
  nodes_.emplace(node, silence);
  const HeartbeatRule& beats = parts_.timing.heartbeat;
  const auto await = [&](Instant at, WorldEventKind kind) {
    if (at == Instant::max()) return;
    parts_.agenda.push(at, EventRank::kThen,
                       {.kind = kind, .serial = silence.serial, .node = node});
  };
  await(fault.at + beats.until_missed(beats.suspect), WorldEventKind::kSuspect);
  await(fault.known_at(), WorldEventKind::kLost);
  await(fault.known_at() + parts_.timing.fencing, WorldEventKind::kFenced);
  await(silence.back, WorldEventKind::kBack);
}

bool SilentNodes::keep_away(NodeId node, Instant until) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return false;
  found->second.back = std::max(found->second.back, until);
  return true;
}

std::optional<Instant> SilentNodes::back_at(NodeId node) const {
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? std::nullopt : std::optional(found->second.back);
}

bool SilentNodes::has_ranks_of(const RunningJob& placed) const {
  if (nodes_.empty()) return false;
  return std::ranges::any_of(placed.gangs, [this](const PlacedGang& gang) {
    return std::ranges::any_of(gang.allocation.ranks,
                               [this](const NodeDevices& at) { return is_silent(at.node); });
  });
}

std::uint32_t SilentNodes::split(const RunningJob& placed, std::vector<NodeId>& heard) const {
  std::uint32_t silent = 0;
  for (const PlacedGang& gang : placed.gangs) {
    for (const NodeDevices& at : gang.allocation.ranks) {
      if (is_silent(at.node)) {
        ++silent;
      } else {
        heard.push_back(at.node);
      }
    }
  }
  return silent;
}

std::optional<InputKind> SilentNodes::report_shed(const WorldEvent& event,
                                                  const State& state) const {
  const JobRun& run = parts_.runs[event.job];
  std::vector<NodeId> nodes;
  for (const Ghost& ghost : state.ghosts()) {
    const bool earlier = ghost.job == event.job && ghost.epoch < run.epoch;
    if (earlier && !is_silent(ghost.at.node)) nodes.push_back(ghost.at.node);
  }
  if (nodes.empty()) return std::nullopt;
  return RanksGone{event.job, event.attempt, std::move(nodes), std::nullopt, run.epoch - 1};
}

std::optional<InputKind> SilentNodes::narrow(RanksGone gone, const State& state) const {
  if (nodes_.empty()) return gone;
  // All remaining ranks were on silent nodes, and the job has moved on without them.
  if (!holds_devices(state.job(gone.job).phase)) return std::nullopt;
  if (split(state.running(gone.job), gone.nodes) == 0) {
    gone.nodes.clear();
  } else if (gone.nodes.empty()) {
    return std::nullopt;
  }
  return gone;
}

std::optional<InputKind> SilentNodes::step(const WorldEvent& event, const State& state,
                                           Instant now) {
  const auto found = nodes_.find(event.node);
  if (found == nodes_.end() || found->second.serial != event.serial) return std::nullopt;
  if (event.kind == WorldEventKind::kLost) return lose(event, state, now);
  if (event.kind == WorldEventKind::kBack) return come_back(event, state, now);
  if (event.kind != WorldEventKind::kSuspect) return report_gone(event, state, now);
  return NodeHeard{event.node, NodeHealth::kSuspect, parts_.timing.heartbeat.suspect};
}

// Where several nodes of a job, or all of them, fall silent together, no node can continue it or
// report its progress: it ends here, and unsaved work is lost. Control stops the other jobs of the
// node.
std::optional<InputKind> SilentNodes::lose(const WorldEvent& event, const State& state,
                                           Instant now) {
  const bool heeded = watched(state.node(event.node).health);
  bool holds = false;
  for (const JobId id : state.jobs_on(event.node)) {
    if (state.job(id).phase == JobPhase::kStopping) continue;
    holds = true;
    std::vector<NodeId> heard;
    const std::uint32_t silent = split(state.running(id), heard);
    const bool halted = parts_.runs[id].progress.halted();
    if (!heeded || !halted || silent == 0 || (silent == 1 && !heard.empty())) continue;
    parts_.agenda.push(now, EventRank::kThen, event);  // then the next job
    return parts_.runs.end_lost(id, {FaultLayer::kHost, event.node, "silent"}, now);
  }
  const Instant leased = nodes_.at(event.node).since + state.setup().timing.lease;
  parts_.agenda.push(std::max(now, leased), EventRank::kThen,
                     {.kind = WorldEventKind::kLeased, .serial = event.serial, .node = event.node});
  const std::uint32_t missed = parts_.timing.heartbeat.lost;
  if (heeded) return NodeHeard{event.node, NodeHealth::kLost, missed};
  // The node was out of use already but let its jobs finish.
  if (!holds) return std::nullopt;
  return NodeFault{event.node, FaultLayer::kHost, "silent", false, true};
}

std::optional<InputKind> SilentNodes::come_back(const WorldEvent& event, const State& state,
                                                Instant now) {
  const Instant back = nodes_.at(event.node).back;
  if (now < back) {
    if (back != Instant::max()) parts_.agenda.push(back, EventRank::kThen, event);
    return std::nullopt;
  }
  if (std::optional<InputKind> gone = report_gone(event, state, now)) return gone;
  nodes_.erase(event.node);
  parts_.faults.lift_over(event.node, now);
  return NodeJoined{event.node, state.node(event.node).boot + 1};
}

std::optional<InputKind> SilentNodes::report_gone(const WorldEvent& event, const State& state,
                                                  Instant now) {
  const bool leases = event.kind == WorldEventKind::kLeased;
  for (const JobId id : state.jobs_on(event.node)) {
    const Job& job = state.job(id);
    if (job.phase != JobPhase::kStopping || (leases && !ends_with_lease(state, id))) continue;
    if (!has_ranks_on(state.running(id), event.node)) continue;
    parts_.agenda.push(now, EventRank::kThen, event);
    return RanksGone{id, job.attempt, {event.node}, parts_.runs[id].reported};
  }
  for (const Ghost& ghost : state.ghosts()) {
    if (ghost.at.node != event.node || (leases && !ends_with_lease(state, ghost.job))) continue;
    parts_.agenda.push(now, EventRank::kThen, event);
    return RanksGone{ghost.job, ghost.attempt, {event.node}, {}, ghost.epoch};
  }
  return std::nullopt;
}

}  // namespace orrery
