#include "tests/scenarios/scenario_checks.hpp"

#include <fmt/format.h>

#include <bit>

#include "scheduler/gang_power.hpp"
#include "scheduler/queue_order.hpp"

namespace orrery {

void ScenarioChecks::gang_fits(const JobRequest& job, const PlacedGang& gang) {
  const GangRequest& asked = job.roles[gang.role].options[gang.option].gang;
  const FleetView view = world_.situation(Instant()).fleet;
  std::uint32_t ranks = 0;
  const NodeId first = gang.allocation.ranks.front().node;
  for (const NodeDevices& at : gang.allocation.ranks) {
    const NodeState& node = view.node(at.node);
    const std::string name = world_.topology().node_name(at.node);
    ranks += static_cast<std::uint32_t>(std::popcount(at.devices));
    if (node.health != NodeHealth::kReady) broken(fmt::format("{}: {} not ready", job.name, name));
    const bool whole = gang.allocation.share == kWholeDevice;
    if (whole && (node.free_mask & at.devices) != at.devices) {
      broken(fmt::format("{}: devices of {} are taken", job.name, name));
    }
    if (asked.required != TopologyLevel::kFleet &&
        world_.tree().around(at.node, asked.required) !=
            world_.tree().around(first, asked.required)) {
      broken(fmt::format("{}: {} is outside its level", job.name, name));
    }
  }
  const std::uint64_t positions = gang.allocation.ranks.front().devices;
  for (const NodeDevices& at : gang.allocation.ranks) {
    if (asked.rails_aligned && (at.devices & ~positions) != 0) {
      broken(fmt::format("{}: not on the same rails everywhere", job.name));
    }
  }
  if (ranks != asked.devices) broken(fmt::format("{}: a gang of {} ranks", job.name, ranks));
}

void ScenarioChecks::starts(const JobRequest& job, std::span<const PlacedGang> gangs,
                            std::span<const GangTerms> terms) {
  std::uint32_t wanted = 0;
  for (const RoleRequest& role : job.roles) wanted += role.gangs;
  if (gangs.size() != wanted) broken(fmt::format("{}: {} gangs", job.name, gangs.size()));
  for (const PlacedGang& gang : gangs) gang_fits(job, gang);
  if (world_.power() == nullptr) return;
  PowerBudget budget = *world_.power();
  for (std::size_t i = 0; i < gangs.size(); ++i) {
    const auto draws = draws_of_gang(budget.tree(), gangs[i], terms[i].draw);
    if (const auto lacking = budget.try_add(world_.caps(), draws)) {
      broken(fmt::format("{}: above the cap of {}", job.name,
                         world_.topology().power_name(lacking->domain)));
    }
  }
}

void ScenarioChecks::power_holds() {
  if (world_.power() == nullptr) return;
  for (std::uint32_t i = 0; i < world_.topology().power_domains().size(); ++i) {
    const Milliwatts excess = world_.power()->excess(world_.caps(), PowerDomainId(i));
    if (excess <= 0) continue;
    broken(fmt::format("{} is {} above its limit", world_.topology().power_name(PowerDomainId(i)),
                       print(watts_of(excess))));
  }
}

void ScenarioChecks::started(const JobRequest& job) {
  if (policy_.quotas == Quotas::kIgnored) return;
  for (const RoleRequest& role : job.roles) {
    const Room room = world_.usage().room(job.tenant, role.options.front().gang.type);
    if (room.devices < 0) {
      broken(
          fmt::format("{}: {} is above its limit", job.name, world_.tenants().path(room.tenant)));
    }
  }
}

void ScenarioChecks::stops(const RunningJob& victim, const JobRequest* in_favour_of) {
  const JobRequest& job = *victim.request;
  if (policy_.preemption == PreemptionRule::kByOrder) return;
  if (!job.preemptible) broken(fmt::format("{}: stopped, though not preemptible", job.name));
  for (const PlacedGang& placed : victim.gangs) {
    const GangRequest& gang = job.roles[placed.role].options[placed.option].gang;
    if (in_favour_of != nullptr && in_favour_of->tenant != job.tenant &&
        policy_.quotas == Quotas::kHeld &&
        gone_->above_guarantee(job.tenant, gang.type, in_favour_of->tenant) <= 0) {
      broken(fmt::format("{}: its tenant is at its guarantee", job.name));
    }
  }
  leaves(victim);
}

void ScenarioChecks::pass_begins(std::span<const RunningJob> running) {
  gone_ = world_.usage();
  for (const RunningJob& job : running) {
    if (job.stopping) leaves(job);
  }
}

void ScenarioChecks::leaves(const RunningJob& job) {
  for (const PlacedGang& placed : job.gangs) {
    const GangRequest& gang = job.request->roles[placed.role].options[placed.option].gang;
    gone_->apply({job.request->tenant, gang.type, rank_of(*job.request),
                  -static_cast<std::int64_t>(gang.devices)});
  }
}

}  // namespace orrery
