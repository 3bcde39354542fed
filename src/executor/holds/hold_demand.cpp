#include "executor/holds/hold_demand.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "fleet/topology.hpp"
#include "scheduler/price/run_time.hpp"

namespace orrery {
namespace {

/// What a job needs of a manager's nodes.
struct Needs {
  std::uint32_t nodes = 0;    ///< whole nodes
  std::uint32_t devices = 0;  ///< of gangs that leave devices of their nodes to others
  Duration longest;
};

class Demand {
 public:
  Demand(const State& state, const HoldNodes& lent, Duration usable)
      : state_(state), lent_(lent), usable_(usable) {
    const Topology& topology = *state.setup().topology;
    for (const NodeId node : lent.nodes) {
      const NodeGroup& group = topology.group(node);
      types_.insert(group.type);
      per_node_ = std::max<std::uint32_t>(per_node_, group.devices);
    }
  }

  [[nodiscard]] NodesNeeded of(std::span<const StillWaits> waiting) {
    for (const StillWaits& each : waiting) {
      if (whole_ >= lent_.most) break;
      const bool waits = state_.has(each.job) && state_.job(each.job).phase == JobPhase::kQueued;
      if (waits && each.refusal.kind == RejectionKind::kBusy) add(each.job);
    }
    const std::uint32_t shared = (devices_ + per_node_ - 1) / std::max(1u, per_node_);
    return {std::min(lent_.most, whole_ + shared), longest_};
  }

 private:
  void add(JobId id) {
    const Job& job = state_.job(id);
    const JobRequest& request = job.submission->request;
    Needs needs;
    for (const RoleRequest& role : request.roles) {
      const std::optional<Needs> gang = of_role(job, role);
      if (!gang) return;
      needs.nodes += gang->nodes * role.gangs;
      needs.devices += gang->devices * role.gangs;
      needs.longest = std::max(needs.longest, gang->longest);
    }
    if (needs.nodes > lent_.most) return;
    whole_ += needs.nodes;
    devices_ += needs.devices;
    longest_ = std::max(longest_, needs.longest);
  }

  /// Returns what a gang of the role needs by its first option on these nodes; none: it cannot run
  /// there, or not to its end.
  [[nodiscard]] std::optional<Needs> of_role(const Job& job, const RoleRequest& role) const {
    for (const GangOption& option : role.options) {
      const GangRequest& gang = option.gang;
      if (!types_.contains(gang.type) || gang.node_devices == 0) continue;
      const auto whole = whole_run_time(job.submission->request, role, option, {});
      const Duration left =
          whole ? Duration::from_seconds(whole->count_seconds() * (1 - job.done)) : Duration();
      if (whole && left > usable_) continue;
      if (gang.node_devices < per_node_ && gang.devices <= gang.node_devices) {
        return Needs{.devices = gang.share < kWholeDevice ? 1 : gang.devices, .longest = left};
      }
      return Needs{.nodes = (gang.devices + gang.node_devices - 1) / gang.node_devices,
                   .longest = left};
    }
    return std::nullopt;
  }

  const State& state_;
  const HoldNodes& lent_;
  Duration usable_;
  std::set<FleetTypeId> types_;
  std::uint32_t per_node_ = 1;
  std::uint32_t whole_ = 0;
  std::uint32_t devices_ = 0;
  Duration longest_;
};

}  // namespace

NodesNeeded nodes_needed(const Core& core, const HoldNodes& lent, Duration usable) {
  return Demand(core.state(), lent, usable).of(core.still_waiting());
}

}  // namespace orrery
