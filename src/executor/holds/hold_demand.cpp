#include "executor/holds/hold_demand.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "fleet/topology.hpp"
#include "scheduler/price/run_time.hpp"

namespace orrery {
namespace {

/// Returns the most devices that one of the nodes has.
std::uint32_t devices_per_node(const HoldNodes& lent, const Topology& topology) {
  std::uint32_t most = 1;
  for (const NodeId node : lent.nodes) {
    most = std::max<std::uint32_t>(most, topology.group(node).devices);
  }
  return most;
}

/// Returns how many nodes that many devices take up.
std::uint32_t nodes_of(std::uint32_t devices, std::uint32_t per_node) {
  return (devices + per_node - 1) / per_node;
}

void sort_once(std::vector<FleetTypeId>& types) {
  std::sort(types.begin(), types.end());
  types.erase(std::unique(types.begin(), types.end()), types.end());
}

class Demand {
 public:
  Demand(const State& state, const HoldNodes& lent, Duration usable)
      : state_(state),
        lent_(lent),
        usable_(usable),
        per_node_(devices_per_node(lent, *state.setup().topology)) {
    const Topology& topology = *state.setup().topology;
    for (const NodeId node : lent.nodes) types_.insert(topology.group(node).type);
  }

  [[nodiscard]] std::vector<JobNeeds> of(std::span<const StillWaits> waiting) {
    std::vector<JobNeeds> needs;
    std::uint32_t whole = 0;
    for (const StillWaits& each : waiting) {
      if (whole >= lent_.most) break;
      const bool waits = state_.has(each.job) && state_.job(each.job).phase == JobPhase::kQueued;
      if (!waits || each.refusal.kind != RejectionKind::kBusy) continue;
      const std::optional<JobNeeds> of_job = needs_of(each.job);
      if (!of_job) continue;
      whole += of_job->nodes;
      needs.push_back(*of_job);
    }
    return needs;
  }

  [[nodiscard]] std::optional<JobNeeds> needs_of(JobId id) const {
    const Job& job = state_.job(id);
    JobNeeds needs{.job = id};
    for (const RoleRequest& role : job.submission->request.roles) {
      const std::optional<JobNeeds> gang = of_role(job, role);
      if (!gang) return std::nullopt;
      needs.nodes += gang->nodes * role.gangs;
      needs.devices += gang->devices * role.gangs;
      needs.longest = std::max(needs.longest, gang->longest);
      needs.types.insert(needs.types.end(), gang->types.begin(), gang->types.end());
    }
    sort_once(needs.types);
    if (needs.nodes > lent_.most) return std::nullopt;
    return needs;
  }

 private:
  /// Returns what a gang of the role needs by its first option on these nodes, and the types of all
  /// such options; none: it cannot run there, or not to its end.
  [[nodiscard]] std::optional<JobNeeds> of_role(const Job& job, const RoleRequest& role) const {
    std::optional<JobNeeds> needs;
    for (const GangOption& option : role.options) {
      const GangRequest& gang = option.gang;
      if (!types_.contains(gang.type) || gang.node_devices == 0) continue;
      const auto whole = whole_run_time(job.submission->request, role, option, {});
      const Duration left =
          whole ? Duration::from_seconds(whole->count_seconds() * (1 - job.done)) : Duration();
      if (whole && left > usable_) continue;
      if (!needs) {
        needs.emplace(JobNeeds{.longest = left});
        if (gang.node_devices < per_node_ && gang.devices <= gang.node_devices) {
          needs->devices = gang.share < kWholeDevice ? 1 : gang.devices;
        } else {
          needs->nodes = nodes_of(gang.devices, gang.node_devices);
        }
      }
      needs->types.push_back(gang.type);
    }
    return needs;
  }

  const State& state_;
  const HoldNodes& lent_;
  Duration usable_;
  std::uint32_t per_node_;
  std::set<FleetTypeId> types_;
};

}  // namespace

std::optional<JobNeeds> needs_of(const State& state, JobId job, const HoldOffer& offer) {
  return Demand(state, offer.lent, offer.usable).needs_of(job);
}

std::vector<JobNeeds> job_needs(const Core& core, const HoldNodes& lent, Duration usable) {
  return Demand(core.state(), lent, usable).of(core.still_waiting());
}

NodesNeeded nodes_needed(std::span<const JobNeeds> needs, const HoldNodes& lent,
                         const Topology& topology) {
  NodesNeeded all;
  std::uint32_t devices = 0;
  for (const JobNeeds& each : needs) {
    all.nodes += each.nodes;
    devices += each.devices;
    all.longest = std::max(all.longest, each.longest);
  }
  all.nodes += nodes_of(devices, devices_per_node(lent, topology));
  all.nodes = std::min(all.nodes, lent.most);
  return all;
}

std::uint32_t nodes_needed(const JobNeeds& needs, const HoldNodes& lent, const Topology& topology) {
  return needs.nodes + nodes_of(needs.devices, devices_per_node(lent, topology));
}

NodesLacking nodes_lacking(std::span<const JobNeeds> needs, std::uint32_t nodes) {
  NodesLacking others;
  for (const JobNeeds& each : needs) {
    if (each.nodes > nodes) return {each.nodes - nodes, each.types};
    nodes -= each.nodes;
    if (each.nodes > 0) continue;
    others.types.insert(others.types.end(), each.types.begin(), each.types.end());
  }
  sort_once(others.types);
  return others;
}

std::vector<FleetTypeId> types_needed(std::span<const JobNeeds> needs) {
  std::vector<FleetTypeId> types;
  for (const JobNeeds& each : needs) {
    types.insert(types.end(), each.types.begin(), each.types.end());
  }
  sort_once(types);
  return types;
}

}  // namespace orrery
