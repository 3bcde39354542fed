#include "agent/launch_plan.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "control/state/state.hpp"

namespace orrery {
namespace {

LaunchPlan empty_plan(const State& state, JobId id) {
  return {.nodes = {}, .lease = lease_of(state, id), .grace = state.setup().timing.grace};
}

/// Adds a share of a node; the caller, which knows the gang, numbers its ranks.
RankShare& add_share(LaunchPlan& plan, const State& state, const NodeDevices& at) {
  auto node = std::lower_bound(plan.nodes.begin(), plan.nodes.end(), at.node,
                               [](const NodeRanks& each, NodeId key) { return each.node < key; });
  if (node == plan.nodes.end() || node->node != at.node) {
    node = plan.nodes.insert(node, {at.node, {}, state.node(at.node).boot});
  }
  RankShare& share = node->shares.emplace_back();
  share.devices = at.devices;
  share.ranks.resize(static_cast<std::size_t>(std::popcount(at.devices)));
  return share;
}

KnownAttempt known_attempt(const State& state, const RunningJob& run) {
  const Job& job = state.job(run.id);
  KnownAttempt known{{run.id, job.attempt}, job.epoch, job.phase, launch_plan(state, run.id), {}};
  if (job.phase == JobPhase::kRunning && !job.up) known.phase = JobPhase::kStarting;
  return known;
}

}  // namespace

Lease lease_of(const State& state, JobId id) {
  const Job& job = state.job(id);
  const bool binding =
      job.submission != nullptr && job.submission->restart == RestartPolicy::kAfterLease;
  return binding ? Lease{Lease::Kind::kBinding, state.setup().timing.lease} : Lease{};
}

LaunchPlan launch_plan(const State& state, JobId job) {
  LaunchPlan plan = empty_plan(state, job);
  const RunningJob& run = state.running(job);
  for (std::size_t gang = 0; gang < run.gangs.size(); ++gang) {
    std::uint32_t rank = 0;
    for (const NodeDevices& at : run.gangs[gang].allocation.ranks) {
      RankShare& share = add_share(plan, state, at);
      share.gang = static_cast<std::uint32_t>(gang);
      share.clock = run.terms[gang].clock;
      share.share = run.gangs[gang].allocation.share;
      for (std::uint32_t& each : share.ranks) each = rank++;
    }
  }
  return plan;
}

std::vector<KnownAttempt> known_attempts(const State& state) {
  std::map<AttemptId, KnownAttempt> known;
  for (const RunningJob& run : state.running()) {
    known.emplace(AttemptId{run.id, state.job(run.id).attempt}, known_attempt(state, run));
  }
  for (const Ghost& ghost : state.ghosts()) {
    const AttemptId id{ghost.job, ghost.attempt};
    const auto [at, added] = known.try_emplace(id);
    KnownAttempt& attempt = at->second;
    if (added) attempt = {id, 0, JobPhase::kStopping, empty_plan(state, ghost.job), {}};
    attempt.epoch = std::max(attempt.epoch, ghost.epoch);
    attempt.leaving.push_back(ghost.at.node);
  }
  std::vector<KnownAttempt> all;
  all.reserve(known.size());
  for (auto& [id, attempt] : known) {
    std::sort(attempt.leaving.begin(), attempt.leaving.end());
    attempt.leaving.erase(std::unique(attempt.leaving.begin(), attempt.leaving.end()),
                          attempt.leaving.end());
    all.push_back(std::move(attempt));
  }
  return all;
}

FleetLink link_of(const State& state, LinkSetup setup, Instant now) {
  const std::size_t nodes = state.setup().topology->node_count();
  setup.boots.reserve(nodes);
  for (std::size_t at = 0; at < nodes; ++at) setup.boots.push_back(state.node(NodeId::at(at)).boot);
  FleetLink link(setup, known_attempts(state), now);
  for (std::size_t at = 0; at < nodes; ++at) {
    if (state.node(NodeId::at(at)).health != NodeHealth::kRepairing) continue;
    link.repair({NodeId::at(at), FaultLayer::kHost}, now);
  }
  return link;
}

}  // namespace orrery
