#include "tests/scenarios/scenario_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "control/state/invariants.hpp"
#include "control/state/snapshot.hpp"
#include "scheduler/power/gang_power.hpp"
#include "scheduler/tenants/queue_order.hpp"

namespace orrery {
namespace {

/// Fleets up to this size are checked after every instant.
constexpr std::uint32_t kSmallFleet = 256;

void leave(TenantUsage& usage, const RunningJob& job) {
  for (const PlacedGang& placed : job.gangs) {
    const GangRequest& gang = job.request->roles[placed.role].options[placed.option].gang;
    usage.apply({job.request->tenant, gang.type, rank_of(*job.request),
                 -static_cast<std::int64_t>(gang.devices)});
  }
}

}  // namespace

void ScenarioChecks::take(Instant at, const Event& event) {
  const auto* start = std::get_if<JobStarted>(&event);
  const auto* stop = std::get_if<JobStopping>(&event);
  if (start != nullptr) starts(*start);
  if (stop != nullptr) stops(*stop);
  const bool disturbs = std::holds_alternative<JobResized>(event) ||
                        (stop != nullptr && stop->reason == StopReason::kPreempted);
  if (disturbs && at >= quiet_from_) broken(fmt::format("not quiet at {}", at.text()));
  state_.apply(at, event);
  if (start != nullptr) started(*start);
}

void ScenarioChecks::starts(const JobStarted& event) {
  const JobRequest& job = state_.job(event.job).submission->request;
  std::uint32_t wanted = 0;
  for (const RoleRequest& role : job.roles) wanted += role.gangs;
  if (event.gangs.size() != wanted) {
    broken(fmt::format("{}: {} gangs", job.name, event.gangs.size()));
  }
  for (const PlacedGang& gang : event.gangs) gang_fits(job, gang);
  const Situation s = state_.situation(state_.now());
  if (s.power == nullptr) return;
  PowerBudget budget = *s.power;
  for (std::size_t i = 0; i < event.gangs.size(); ++i) {
    const auto draws = draws_of_gang(budget.tree(), event.gangs[i], event.terms[i].draw);
    if (const auto lacking = budget.try_add(*s.caps, draws)) {
      broken(fmt::format("{}: above the cap of {}", job.name,
                         state_.setup().topology->power_name(lacking->domain)));
    }
  }
}

void ScenarioChecks::gang_fits(const JobRequest& job, const PlacedGang& gang) {
  const GangRequest& asked = job.roles[gang.role].options[gang.option].gang;
  const FleetView view = state_.fleet().view();
  const PlaceTree& tree = *state_.setup().tree;
  std::uint32_t ranks = 0;
  const NodeDevices& first = gang.allocation.ranks.front();
  for (const NodeDevices& at : gang.allocation.ranks) {
    const NodeState& node = view.node(at.node);
    const std::string name = view.topology().node_name(at.node);
    ranks += static_cast<std::uint32_t>(std::popcount(at.devices));
    if (node.health != NodeHealth::kReady) broken(fmt::format("{}: {} not ready", job.name, name));
    const bool whole = gang.allocation.share == kWholeDevice;
    if (whole && (node.free_mask & at.devices) != at.devices) {
      broken(fmt::format("{}: devices of {} are taken", job.name, name));
    }
    if (asked.required != TopologyLevel::kFleet &&
        tree.around(at.node, asked.required) != tree.around(first.node, asked.required)) {
      broken(fmt::format("{}: {} is outside its level", job.name, name));
    }
    if (asked.rails_aligned && (at.devices & ~first.devices) != 0) {
      broken(fmt::format("{}: not on the same rails everywhere", job.name));
    }
  }
  if (ranks != asked.devices) broken(fmt::format("{}: a gang of {} ranks", job.name, ranks));
}

void ScenarioChecks::started(const JobStarted& event) {
  const Job& job = state_.job(event.job);
  if (state_.policy().quotas == Quotas::kIgnored) return;
  const Situation s = state_.situation(state_.now());
  for (const RoleRequest& role : job.submission->request.roles) {
    const FleetTypeId type = role.options.front().gang.type;
    for (TenantId at = job.tenant; at.valid(); at = state_.tenants().parent(at)) {
      for (const FleetTypeId column : {type, kAllTypes}) {
        if (s.usage->used(at, column) <= state_.tenants().limit(at, column)) continue;
        broken(fmt::format("{}: {} is above its limit", job.name, state_.tenants().path(at)));
      }
    }
  }
}

// Stopping jobs count as gone.
void ScenarioChecks::stops(const JobStopping& event) {
  const bool for_power = event.reason == StopReason::kPower;
  if (event.reason != StopReason::kPreempted && !for_power) return;
  if (state_.policy().preemption == PreemptionRule::kByOrder) return;
  const RunningJob& victim = state_.running(event.job);
  const JobRequest& job = *victim.request;
  if (!job.preemptible) broken(fmt::format("{}: stopped, though not preemptible", job.name));
  if (for_power || state_.policy().quotas == Quotas::kIgnored) return;
  const TenantId winner = state_.job(event.in_favour_of).tenant;
  if (winner == job.tenant) return;
  TenantUsage usage = *state_.situation(state_.now()).usage;
  for (const RunningJob& run : state_.running()) {
    if (run.stopping) leave(usage, run);
  }
  for (const PlacedGang& placed : victim.gangs) {
    const GangRequest& gang = job.roles[placed.role].options[placed.option].gang;
    if (usage.above_guarantee(job.tenant, gang.type, winner) <= 0) {
      broken(fmt::format("{}: its tenant is at its guarantee", job.name));
    }
  }
}

void ScenarioChecks::instant_ends() {
  const std::span<const RunningJob> running = state_.running();
  const bool leaving = std::any_of(running.begin(), running.end(),
                                   [](const RunningJob& job) { return job.stopping; });
  const Situation s = state_.situation(state_.now());
  const Topology& topology = *state_.setup().topology;
  for (std::uint32_t i = 0; s.power != nullptr && !leaving && i < topology.power_domains().size();
       ++i) {
    const Milliwatts excess = s.power->excess(*s.caps, PowerDomainId(i));
    if (excess <= 0) continue;
    broken(fmt::format("{} is {} above its limit at {}", topology.power_name(PowerDomainId(i)),
                       print(watts_of(excess)), state_.now().text()));
  }
  if (topology.device_count() > kSmallFleet) return;
  if (auto what = broken_invariant(state_)) broken(*std::move(what));
}

void ScenarioChecks::ends(const State& state) {
  if (auto what = broken_invariant(state_)) broken(*std::move(what));
  if (digest_of(state_) != digest_of(state)) broken("events alone do not carry the state");
}

}  // namespace orrery
