#include "control/passes/full_passes.hpp"

#include <algorithm>
#include <span>

namespace orrery {
namespace {

/// Whether a running job has several sizes or types to choose from.
bool may_change(const RunningJob& job) {
  const auto several = [](const RoleRequest& role) { return role.options.size() > 1; };
  return std::any_of(job.request->roles.begin(), job.request->roles.end(), several);
}

/// Whether a round is due although no job waits: jobs take turns on the faster type, and a job that
/// was too young to change at the last round may grow at the next.
bool take_turns(const State& state) {
  const std::span<const RunningJob> running = state.running();
  if (state.policy().preemption != PreemptionRule::kRounds || running.empty()) return false;
  return state.setup().topology->types_of(Topology::root()).size() > 1 ||
         std::any_of(running.begin(), running.end(), may_change);
}

}  // namespace

Proposal full_pass(const State& state, Scheduler& scheduler, Instant now) {
  return {state.version(), scheduler.decide(state.situation(now), state.policy(), PassKind::kFull)};
}

Proposal full_pass(const HeldSituation& held, Scheduler& scheduler) {
  return {held.version(), scheduler.decide(held.situation(), held.policy(), PassKind::kFull)};
}

// Running jobs may grow, move or speed up when something became free, although no job waits.
Instant FullPasses::due(const State& state, Instant now) const {
  const Policy& policy = state.policy();
  if (!wants_full(policy) || policy.full_interval <= Seconds() || under_way_) return Instant::max();
  const Changes& changes = state.changes();
  const bool runs_on =
      !state.running().empty() && (changes.freed != seen_.freed || changes.limits != seen_.limits ||
                                   changes.links != seen_.links);
  if (state.waiting().empty() && !runs_on && !take_turns(state)) return Instant::max();
  const Duration interval = Duration::from_seconds(policy.full_interval.value());
  return begun_ ? std::max(now, *begun_ + interval) : now;
}

void FullPasses::begin(const State& state, Instant now) {
  begun_ = now;
  seen_ = state.changes();
  under_way_ = true;
}

bool FullPasses::end(const Proposal& proposal) {
  under_way_ = false;
  return proposal.version >= options_since_;
}

void FullPasses::take_up_fleet(std::uint64_t version) {
  under_way_ = false;
  options_since_ = version;
}

}  // namespace orrery
