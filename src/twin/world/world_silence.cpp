// Nodes that fall silent, and when control may take what ran there for gone.
//
// A silent node cannot report that its ranks have ended, so devices and jobs wait for proof: the
// node reboots, an operator has cut it off, or the lease of the job has expired. A job whose
// effects are fenced waits for none of these; control decides that.
#include <algorithm>
#include <utility>

#include "agent/launch_plan.hpp"
#include "twin/world/world.hpp"

namespace orrery {
namespace {

constexpr std::uint8_t kSilenceRank = 1;

bool has_ranks_on(const RunningJob& run, NodeId node) {
  const auto here = [node](const NodeDevices& at) { return at.node == node; };
  return std::any_of(run.gangs.begin(), run.gangs.end(), [&](const PlacedGang& gang) {
    return std::any_of(gang.allocation.ranks.begin(), gang.allocation.ranks.end(), here);
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

// Another fault that strikes a silent node only keeps it away longer.
void World::fall_silent(NodeId node, const Fault& fault) {
  const auto known = silent_.find(node);
  if (known != silent_.end()) {
    known->second.back = std::max(known->second.back, fault.over_at());
    return;
  }
  const Silence silence{fault.at, fault.over_at(), ++silences_};
  silent_.emplace(node, silence);
  const HeartbeatRule& beats = facts_.timing.heartbeat;
  const auto await = [&](Instant at, Kind kind) {
    if (at == Instant::max()) return;
    queue_.push(at, kSilenceRank, {.kind = kind, .serial = silence.serial, .node = node});
  };
  await(fault.at + beats.until_missed(beats.suspect), Kind::kSuspect);
  await(fault.known_at(), Kind::kLost);
  await(fault.known_at() + facts_.timing.fencing, Kind::kFenced);
  await(silence.back, Kind::kBack);
}

std::uint32_t World::silent_of(const RunningJob& run, std::vector<NodeId>* heard) const {
  std::uint32_t silent = 0;
  if (silent_.empty() && heard == nullptr) return silent;
  for (const PlacedGang& gang : run.gangs) {
    for (const NodeDevices& at : gang.allocation.ranks) {
      if (silent_.contains(at.node)) {
        ++silent;
      } else if (heard != nullptr) {
        heard->push_back(at.node);
      }
    }
  }
  return silent;
}

std::optional<Input> World::reported_gone(const Event& event, const State& state, Instant now) {
  Run& run = runs_[event.job.value()];
  if (!run.told) run.told = take_progress(run, now);
  RanksGone gone{event.job, event.attempt, {}, run.told};
  if (silent_.empty()) return Input{now, std::move(gone), {}};
  // All remaining ranks were on silent nodes, and the job has moved on without them.
  if (!holds_devices(state.job(event.job).phase)) return std::nullopt;
  if (silent_of(state.running(event.job), &gone.nodes) == 0)
    gone.nodes.clear();
  else if (gone.nodes.empty())
    return std::nullopt;
  return Input{now, std::move(gone), {}};
}

std::optional<Input> World::step_silence(const Event& event, const State& state, Instant now) {
  const auto found = silent_.find(event.node);
  if (found == silent_.end() || found->second.serial != event.serial) return std::nullopt;
  switch (event.kind) {
    case Kind::kSuspect:
      return Input{
          now, NodeHeard{event.node, NodeHealth::kSuspect, facts_.timing.heartbeat.suspect}, {}};
    case Kind::kLost:
      return lost(event, state, now);
    case Kind::kBack: {
      if (now < found->second.back) {
        if (found->second.back != Instant::max()) {
          queue_.push(found->second.back, kSilenceRank, event);
        }
        return std::nullopt;
      }
      if (std::optional<Input> gone = gone_from(event, state, now)) return gone;
      silent_.erase(found);
      lift_past(event.node, &Fault::over_at, now);
      return Input{now, NodeJoined{event.node, state.node(event.node).boot + 1}, {}};
    }
    default:
      return gone_from(event, state, now);
  }
}

// Where several nodes of a job, or all of them, fall silent together, no node can continue it or
// report its progress: it ends here, and unsaved work is lost. Control stops the other jobs of the
// node.
std::optional<Input> World::lost(const Event& event, const State& state, Instant now) {
  const bool heeded = watched(state.node(event.node).health);
  bool holds = false;
  for (const JobId id : state.jobs_on(event.node)) {
    Run& run = runs_[id.value()];
    if (state.job(id).phase == JobPhase::kStopping) continue;
    holds = true;
    std::vector<NodeId> heard;
    const std::uint32_t silent = silent_of(state.running(id), &heard);
    if (!heeded || !run.halted || silent == 0 || (silent == 1 && !heard.empty())) continue;
    queue_.push(now, kSilenceRank, event);  // then the next job
    return ends_here(id, {FaultLayer::kHost, event.node, "silent"}, now);
  }
  const Instant leased = silent_.at(event.node).since + state.setup().timing.lease;
  queue_.push(std::max(now, leased), kSilenceRank,
              {.kind = Kind::kLeased, .serial = event.serial, .node = event.node});
  const std::uint32_t missed = facts_.timing.heartbeat.lost;
  if (heeded) return Input{now, NodeHeard{event.node, NodeHealth::kLost, missed}, {}};
  // The node was out of use already but let its jobs finish.
  if (!holds) return std::nullopt;
  return Input{now, NodeFault{event.node, FaultLayer::kHost, "silent", false, true}, {}};
}

std::optional<Input> World::gone_from(const Event& event, const State& state, Instant now) {
  const bool leases = event.kind == Kind::kLeased;
  for (const JobId id : state.jobs_on(event.node)) {
    const Job& job = state.job(id);
    if (job.phase != JobPhase::kStopping || (leases && !ends_with_lease(state, id))) continue;
    if (!has_ranks_on(state.running(id), event.node)) continue;
    queue_.push(now, kSilenceRank, event);
    return Input{now, RanksGone{id, job.attempt, {event.node}, runs_[id.value()].told}, {}};
  }
  for (const Ghost& ghost : state.ghosts()) {
    if (ghost.at.node != event.node || (leases && !ends_with_lease(state, ghost.job))) continue;
    queue_.push(now, kSilenceRank, event);
    return Input{now, RanksGone{ghost.job, ghost.attempt, {event.node}, {}, ghost.epoch}, {}};
  }
  return std::nullopt;
}

}  // namespace orrery
