// bench/placement_churn.hpp - churn of gangs on a fleet under one rule of choosing nodes, and its
// effect on the fleet and on their speed.
//
// All rules meet the same arrivals: sizes and lifetimes are drawn before a place is sought. A gang
// that does not fit is lost. The network: leaves carry everything; traffic that leaves a pod shares
// a part of it, evenly among all nodes of gangs that span pods, all sending at once. Pure in the
// seed; one thread.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "base/numbers/rng.hpp"
#include "fleet/fleet.hpp"
#include "perf/machine/placement.hpp"
#include "scheduler/pass/taking.hpp"
#include "scheduler/place/placer.hpp"
#include "scheduler/plans/plan_table.hpp"

namespace orrery {

enum class NodeRule {
  kBestFit,
  kFirstPlace,  ///< NodeFit::kFirst: the first place that holds the gang, its first nodes
  kFirstNodes,  ///< the fleet's first nodes that hold a unit, wherever they are
  kRandom,
};

struct ChurnShape {
  double load = 1;  ///< devices asked for, over those there are
  std::uint32_t arrivals = 12'000;
  double oversubscription = 7;  ///< nodes of a pod, over those whose traffic may leave it
  std::uint64_t seed = 1;
};

/// Figures of gangs of one size: means over the looks.
struct GangQuality {
  double gangs = 0;
  double racks = 0;
  double pods = 0;
  double step_seconds = 0;
};

/// Means over looks at the second half.
struct ChurnResult {
  double occupancy = 0;    ///< devices in use, of all
  double whole_nodes = 0;  ///< nodes in which nothing runs, of those with something free
  double speed = 0;        ///< of gangs with a plan over that on their canonical piece, by devices
  double planned = 0;      ///< devices of such gangs, summed over the looks
  GangQuality of_64;
  GangQuality of_512;
};

class PlacementChurn {
 public:
  PlacementChurn(const PlaceTree& tree, const PlanTable& plans)
      : tree_(tree), plans_(plans), placer_(tree) {}

  [[nodiscard]] ChurnResult run(NodeRule rule, const ChurnShape& shape);

 private:
  static constexpr std::array<std::uint32_t, 14> kSizes{1, 1, 1, 1,  2,  2,   4,
                                                        4, 8, 8, 16, 64, 128, 512};
  struct Running {
    double end;
    std::size_t at;
    bool operator>(const Running& other) const {
      return end != other.end ? end > other.end : at > other.at;
    }
  };

  [[nodiscard]] AllocationOrRefusal choose(const Fleet& fleet, const GangRequest& gang,
                                           NodeRule rule);
  [[nodiscard]] AllocationOrRefusal of_nodes(const Fleet& fleet, const GangRequest& gang,
                                             NodeRule rule);
  [[nodiscard]] std::uint32_t pod_of(NodeId node) const {
    const Topology& topology = tree_.topology();
    return topology.domain(topology.place(node).rack).parent.value();
  }
  [[nodiscard]] bool spans_pods(const Allocation& gang) const {
    return pod_of(gang.ranks.front().node) != pod_of(gang.ranks.back().node);
  }
  void share_network(const std::vector<Allocation>& gangs, double oversubscription);
  void measure(const Fleet& fleet, const Allocation& gang, ChurnResult& result) const;
  void look(const Fleet& fleet, const std::vector<Allocation>& gangs, ChurnResult& result);

  const PlaceTree& tree_;
  const PlanTable& plans_;
  Placer placer_;
  Rng nodes_{1};
  std::vector<double> left_;  ///< by domain; see share_network
};

inline AllocationOrRefusal PlacementChurn::of_nodes(const Fleet& fleet, const GangRequest& gang,
                                                    NodeRule rule) {
  const std::size_t wanted = gang.devices / gang.node_devices;
  std::vector<NodeId> fitting;
  for (std::uint32_t n = 0; n < fleet.topology().node_count(); ++n) {
    if (rule == NodeRule::kFirstNodes && fitting.size() == wanted) break;
    if (fleet.view().node(NodeId(n)).available() >= gang.node_devices) fitting.emplace_back(n);
  }
  if (fitting.size() < wanted) return tl::unexpected(Refusal{});
  Allocation allocation;
  for (std::size_t i = 0; i < wanted; ++i) {
    if (rule == NodeRule::kRandom) {
      std::swap(fitting[i], fitting[i + nodes_.below(fitting.size() - i)]);
    }
    std::uint64_t devices = 0;
    std::uint64_t free = fleet.view().node(fitting[i]).free_mask;
    for (std::uint32_t d = 0; d < gang.node_devices; ++d) {
      devices |= free & (~free + 1);
      free &= free - 1;
    }
    allocation.ranks.push_back({fitting[i], devices});
  }
  std::sort(allocation.ranks.begin(), allocation.ranks.end(),
            [](const NodeDevices& a, const NodeDevices& b) { return a.node < b.node; });
  return allocation;
}

inline AllocationOrRefusal PlacementChurn::choose(const Fleet& fleet, const GangRequest& gang,
                                                  NodeRule rule) {
  if (rule == NodeRule::kRandom || rule == NodeRule::kFirstNodes) {
    return of_nodes(fleet, gang, rule);
  }
  PlaceOptions options;
  options.fit = rule == NodeRule::kBestFit ? NodeFit::kBest : NodeFit::kFirst;
  return placer_.place(fleet.view(), gang, options);
}

// Part of its bandwidth that a node of a spanning gang has left, by pod.
inline void PlacementChurn::share_network(const std::vector<Allocation>& gangs,
                                          double oversubscription) {
  const Topology& topology = tree_.topology();
  std::vector<double> sending(topology.domains().size());
  for (const Allocation& gang : gangs) {
    if (gang.ranks.empty() || !spans_pods(gang)) continue;
    for (const NodeDevices& at : gang.ranks) ++sending[pod_of(at.node)];
  }
  left_.assign(sending.size(), 1);
  for (std::size_t pod = 0; pod < sending.size(); ++pod) {
    const double carried = topology.domains()[pod].nodes / oversubscription;
    if (sending[pod] > carried) left_[pod] = carried / sending[pod];
  }
}

inline void PlacementChurn::measure(const Fleet& fleet, const Allocation& gang,
                                    ChurnResult& result) const {
  const std::uint32_t devices = gang.devices();
  const PlanEntry* entry = plans_.find({WorkId(0), FleetTypeId(0), devices});
  if (entry == nullptr || !*entry) return;
  Placement placement = placement_of(gang.ranks, fleet.view());
  std::uint32_t racks = 0;
  std::uint32_t pods = 0;
  DomainId rack;
  std::uint32_t pod = ~0u;
  for (const NodeDevices& at : gang.ranks) {
    const DomainId here = tree_.topology().place(at.node).rack;
    racks += here != rack ? 1 : 0;
    pods += pod_of(at.node) != pod ? 1 : 0;
    rack = here;
    pod = pod_of(at.node);
    if (!spans_pods(gang)) continue;
    placement.scale_out_quality = std::min(placement.scale_out_quality, left_[pod]);
  }
  const auto here = reprice(entry->value().front(), placement);
  if (!here) return;
  result.speed += devices / here->ratio;
  result.planned += devices;
  if (devices != 64 && devices != 512) return;
  GangQuality& quality = devices == 64 ? result.of_64 : result.of_512;
  ++quality.gangs;
  quality.racks += racks;
  quality.pods += pods;
  quality.step_seconds += here->step_seconds;
}

inline void PlacementChurn::look(const Fleet& fleet, const std::vector<Allocation>& gangs,
                                 ChurnResult& result) {
  const FreeCount free = fleet.view().free(Topology::root(), FleetTypeId(0));
  const double all = fleet.topology().device_count(Topology::root(), FleetTypeId(0));
  const auto nodes = fleet.view().nodes_by_available(Topology::root(), FleetTypeId(0));
  double some = 0;
  for (std::size_t k = 1; k < nodes.size(); ++k) some += nodes[k];
  result.occupancy += 1 - free.devices / all;
  result.whole_nodes += some > 0 ? free.nodes / some : 1;
  for (const Allocation& gang : gangs) {
    if (gang.ranks.size() > 1) measure(fleet, gang, result);
  }
}

inline ChurnResult PlacementChurn::run(NodeRule rule, const ChurnShape& shape) {
  constexpr std::uint32_t kLooks = 20;
  Fleet fleet(tree_.topology());
  Rng arrivals = Rng::stream(shape.seed, "arrivals");
  nodes_ = Rng::stream(shape.seed, "nodes");
  double mean = 0;
  for (const std::uint32_t size : kSizes) mean += static_cast<double>(size) / kSizes.size();
  const double all = fleet.topology().device_count(Topology::root(), FleetTypeId(0));
  const double life = shape.load * all / mean;
  ChurnResult result;
  std::vector<Allocation> gangs;  // by arrival; empty: gone
  std::priority_queue<Running, std::vector<Running>, std::greater<>> ends;
  for (std::uint32_t now = 0; now < shape.arrivals; ++now) {
    const std::uint32_t devices = kSizes[arrivals.below(kSizes.size())];
    const double end = now + 2 * life * arrivals.uniform();
    for (; !ends.empty() && ends.top().end <= now; ends.pop()) {
      give_back(fleet, gangs[ends.top().at], {});
      gangs[ends.top().at] = {};
    }
    if (now >= shape.arrivals / 2 && now % (shape.arrivals / 2 / kLooks) == 0) {
      share_network(gangs, shape.oversubscription);
      look(fleet, gangs, result);
    }
    GangRequest request{.type = FleetTypeId(0), .devices = devices};
    request.node_devices = std::min(devices, 8u);
    AllocationOrRefusal gang = choose(fleet, request, rule);
    if (!gang) continue;
    take(fleet, *gang, {});
    ends.push({end, gangs.size()});
    gangs.push_back(*std::move(gang));
  }
  result.occupancy /= kLooks;
  result.whole_nodes /= kLooks;
  result.speed /= std::max(result.planned, 1.0);
  for (GangQuality* quality : {&result.of_64, &result.of_512}) {
    const double count = std::max(quality->gangs, 1.0);
    for (double* sum : {&quality->racks, &quality->pods, &quality->step_seconds}) *sum /= count;
  }
  return result;
}

}  // namespace orrery
