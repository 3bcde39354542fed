#include "scheduler/place/job_placer.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>

namespace orrery {

std::uint32_t gangs_of(const JobRequest& job) {
  std::uint32_t gangs = 0;
  for (const RoleRequest& role : job.roles) gangs += role.gangs;
  return gangs;
}

std::uint32_t devices_missing(const Topology& topology, const GangRequest& gang, FreeCount free) {
  if (gang.share != kWholeDevice) return 0;
  const std::uint32_t each = topology.node_devices_max(gang.type);
  if (gang.node_devices == each && each > 1) {
    const std::uint32_t nodes = gang.devices / each;
    if (nodes > free.nodes) return (nodes - free.nodes) * each;
  }
  return gang.devices > free.devices ? gang.devices - free.devices : 0;
}

std::vector<std::uint32_t> JobPlacer::order_of(const JobRequest& job) {
  std::vector<std::uint32_t> order(job.roles.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return job.roles[a].devices_max > job.roles[b].devices_max;
  });
  return order;
}

std::vector<NodeRun> avoided_by_spread(const PlaceTree& tree, const RoleRequest& role,
                                       const SpreadOver& over) {
  std::vector<NodeRun> full;
  if (!role.spread) return full;
  std::map<std::uint32_t, std::pair<NodeRun, std::uint32_t>> gangs;  // by first node
  const auto count = [&](const PlacedGang& gang) {
    NodeId last;
    for (const NodeDevices& entry : gang.allocation.ranks) {
      NodeRun range{entry.node, 1};
      if (role.spread->level != TopologyLevel::kNode) {
        range = tree[tree.around(entry.node, role.spread->level)].nodes;
      }
      if (last == range.first) continue;
      last = range.first;
      auto& [place, number] = gangs[range.first.value()];
      place = range;
      ++number;
    }
  };
  for (const PlacedGang& gang : over.placed) {
    if (gang.role == over.role) count(gang);
  }
  for (const PlacedGang& gang : over.siblings) count(gang);
  for (const auto& [first, entry] : gangs) {
    if (entry.second >= role.spread->most) full.push_back(entry.first);
  }
  return full;
}

// Devices of a type that the job's gangs have so far.
std::uint32_t JobPlacer::held(const Next& next, FleetTypeId type) {
  std::uint32_t devices = 0;
  for (const PlacedGang& gang : next.placed) {
    const GangRequest& request = next.job->roles[gang.role].options[gang.option].gang;
    if (request.type == type) devices += request.devices;
  }
  return devices;
}

JobPlacer::GangOrRefusal JobPlacer::place_gang(const FleetView& view, const Next& next,
                                               const JobPlaceRules& rules) {
  const RoleRequest& role = next.job->roles[next.role];
  std::optional<Refusal> closest;
  for (std::uint32_t i = 0; i < role.options.size(); ++i) {
    const GangRequest& gang = role.options[i].gang;
    if (rules.may_take && !rules.may_take(gang.type, held(next, gang.type) + gang.devices)) {
      if (!closest) closest = Refusal{RejectionKind::kQuota, TopologyLevel::kFleet, gang.devices};
      continue;
    }
    AllocationOrRefusal placed = placer_.place(view, gang, next.options);
    if (placed) return PlacedGang{next.role, i, *std::move(placed), gang.host};
    const bool closer = !closest || closest->kind == RejectionKind::kQuota ||
                        placed.error().missing < closest->missing;
    if (closer) closest = placed.error();
  }
  return tl::unexpected(closest.value_or(Refusal{RejectionKind::kNever, TopologyLevel::kFleet, 0}));
}

JobPlacer::GangOrRefusal JobPlacer::place_near(const FleetView& view, Next next, NodeId anchor,
                                               const JobPlaceRules& rules) {
  const PlaceTree& tree = placer_.tree();
  GangOrRefusal found = tl::unexpected(Refusal{});
  for (PlaceId at = tree.around(anchor); at.valid(); at = tree[at].parent) {
    next.options.within = at;
    found = place_gang(view, next, rules);
    if (found) break;
  }
  return found;
}

bool JobPlacer::fits(const FleetView& view, const JobRequest& job, const JobPlaceRules& rules) {
  if (gangs_of(job) != 1 || !rules.siblings.empty()) return place(view, job, rules).has_value();
  PlaceOptions options;
  options.fit = rules.fit;
  options.share_max = rules.share_max;
  const RoleRequest& role = job.roles.front();
  return std::any_of(role.options.begin(), role.options.end(), [&](const GangOption& option) {
    const GangRequest& gang = option.gang;
    if (rules.may_take && !rules.may_take(gang.type, gang.devices)) return false;
    return placer_.fits(view, gang, options);
  });
}

bool JobPlacer::may_fit(const JobRequest& job, const PlaceTry::Free& free) const {
  const Topology& topology = placer_.tree().topology();
  return std::all_of(job.roles.begin(), job.roles.end(), [&](const RoleRequest& role) {
    return std::any_of(role.options.begin(), role.options.end(), [&](const GangOption& option) {
      return devices_missing(topology, option.gang, free(option.gang.type)) == 0;
    });
  });
}

GangsOrRefusal JobPlacer::place(const FleetView& view, const JobRequest& job,
                                const JobPlaceRules& rules) {
  std::vector<PlacedGang> placed;
  trial_.begin(view, gangs_of(job));
  for (const std::uint32_t index : order_of(job)) {
    const RoleRequest& role = job.roles[index];
    for (std::uint32_t g = 0; g < role.gangs; ++g) {
      const std::vector<NodeRun> avoid =
          avoided_by_spread(placer_.tree(), role, {index, placed, rules.siblings});
      Next next{&job, index, placed, {}};
      next.options.fit = rules.fit;
      next.options.share_max = rules.share_max;
      next.options.avoid = avoid;
      const bool near = !placed.empty() && placed.front().role != index;
      GangOrRefusal gang = near ? place_near(trial_.view(), next,
                                             placed.front().allocation.ranks.front().node, rules)
                                : place_gang(trial_.view(), next, rules);
      if (!gang) return tl::unexpected(gang.error());
      placed.push_back(*std::move(gang));
      trial_.add(placed.back());
    }
  }
  return placed;
}

PlaceTry place_try(JobPlacer& placer, const JobRequest& job, JobPlaceRules rules) {
  const auto shared = std::make_shared<const JobPlaceRules>(std::move(rules));
  return {
      [&placer, &job, shared](const FleetView& view) -> std::optional<std::vector<PlacedGang>> {
        GangsOrRefusal gangs = placer.place(view, job, *shared);
        if (!gangs) return std::nullopt;
        return *std::move(gangs);
      },
      [&placer, &job, shared](const FleetView& view) { return placer.fits(view, job, *shared); },
      [&placer, &job](const PlaceTry::Free& free) { return placer.may_fit(job, free); }};
}

}  // namespace orrery
