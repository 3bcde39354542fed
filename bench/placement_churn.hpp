// bench/placement_churn.hpp - gangs that come and go on a fleet by one rule of choosing nodes, and
// what becomes of the fleet and of their speed.
//
// Everybody meets the same arrivals: sizes and lifetimes are drawn before a place is sought. A gang
// that does not fit is lost. Pure in the seed; one thread.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "base/rng.hpp"
#include "fleet/fleet.hpp"
#include "perf/placement.hpp"
#include "scheduler/placer.hpp"
#include "scheduler/plan_table.hpp"
#include "scheduler/taking.hpp"

namespace orrery {

enum class NodeRule { kBestFit, kFirstFit, kRandom };

struct ChurnShape {
  double load = 1;  ///< devices asked for, over those there are
  std::uint32_t arrivals = 12'000;
  std::uint64_t seed = 1;
};

/// Of gangs of one size: means.
struct GangQuality {
  double gangs = 0;
  double racks = 0;
  double pods = 0;
  double step_seconds = 0;
};

struct ChurnResult {
  double occupancy = 0;    ///< devices in use, mean over the second half
  double whole_nodes = 0;  ///< nodes in which nothing runs, of those with something free
  double speed = 0;        ///< of gangs with a plan over that on their canonical piece, by devices
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
  [[nodiscard]] AllocationOrRefusal at_random(const Fleet& fleet, const GangRequest& gang);
  void measure(const Fleet& fleet, const Allocation& gang, ChurnResult& result);
  void measure_fleet(const Fleet& fleet, ChurnResult& result);

  const PlaceTree& tree_;
  const PlanTable& plans_;
  Placer placer_;
  Rng nodes_{1};
  double weight_ = 0;  ///< devices of the gangs whose speed was measured
  double looks_ = 0;
};

inline AllocationOrRefusal PlacementChurn::at_random(const Fleet& fleet, const GangRequest& gang) {
  std::vector<NodeId> fitting;
  for (std::uint32_t n = 0; n < fleet.topology().node_count(); ++n) {
    if (fleet.view().node(NodeId(n)).available() >= gang.node_devices) fitting.emplace_back(n);
  }
  const std::size_t wanted = gang.devices / gang.node_devices;
  if (fitting.size() < wanted) return tl::unexpected(Refusal{});
  Allocation allocation;
  for (std::size_t i = 0; i < wanted; ++i) {
    std::swap(fitting[i], fitting[i + nodes_.below(fitting.size() - i)]);
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
  if (rule == NodeRule::kRandom) return at_random(fleet, gang);
  PlaceOptions options;
  options.fit = rule == NodeRule::kBestFit ? NodeFit::kBest : NodeFit::kFirst;
  return placer_.place(fleet.view(), gang, options);
}

inline void PlacementChurn::measure(const Fleet& fleet, const Allocation& gang,
                                    ChurnResult& result) {
  const std::uint32_t devices = gang.devices();
  const PlanEntry* entry = plans_.find({WorkId(0), FleetTypeId(0), devices});
  if (entry == nullptr || !*entry) return;
  const auto here = reprice(entry->value().front(), placement_of(gang.ranks, fleet.view()));
  if (!here) return;
  result.speed += devices / here->ratio;
  weight_ += devices;
  if (devices != 64 && devices != 512) return;
  GangQuality& quality = devices == 64 ? result.of_64 : result.of_512;
  const Topology& topology = fleet.topology();
  DomainId rack;
  DomainId pod;
  for (const NodeDevices& at : gang.ranks) {
    const DomainId here_rack = topology.place(at.node).rack;
    const DomainId here_pod = topology.domain(here_rack).parent;
    quality.racks += here_rack != rack ? 1 : 0;
    quality.pods += here_pod != pod ? 1 : 0;
    rack = here_rack;
    pod = here_pod;
  }
  ++quality.gangs;
  quality.step_seconds += here->step_seconds;
}

inline void PlacementChurn::measure_fleet(const Fleet& fleet, ChurnResult& result) {
  const FreeCount free = fleet.view().free(Topology::root(), FleetTypeId(0));
  const double all = fleet.topology().device_count(Topology::root(), FleetTypeId(0));
  const auto nodes = fleet.view().nodes_by_available(Topology::root(), FleetTypeId(0));
  double some = 0;
  for (std::size_t k = 1; k < nodes.size(); ++k) some += nodes[k];
  result.occupancy += 1 - free.devices / all;
  result.whole_nodes += some > 0 ? free.nodes / some : 1;
  ++looks_;
}

inline ChurnResult PlacementChurn::run(NodeRule rule, const ChurnShape& shape) {
  Fleet fleet(tree_.topology());
  Rng arrivals = Rng::stream(shape.seed, "arrivals");
  nodes_ = Rng::stream(shape.seed, "nodes");
  weight_ = looks_ = 0;
  double mean = 0;
  for (const std::uint32_t size : kSizes) mean += static_cast<double>(size) / kSizes.size();
  const double all = fleet.topology().device_count(Topology::root(), FleetTypeId(0));
  const double life = shape.load * all / mean;
  ChurnResult result;
  std::vector<Allocation> gangs;
  std::priority_queue<Running, std::vector<Running>, std::greater<>> ends;
  for (std::uint32_t now = 0; now < shape.arrivals; ++now) {
    const std::uint32_t devices = kSizes[arrivals.below(kSizes.size())];
    const double end = now + 2 * life * arrivals.uniform();
    for (; !ends.empty() && ends.top().end <= now; ends.pop()) {
      give_back(fleet, gangs[ends.top().at], {});
    }
    const bool counts = now >= shape.arrivals / 2;
    if (counts) measure_fleet(fleet, result);
    GangRequest request{.type = FleetTypeId(0), .devices = devices};
    request.node_devices = std::min(devices, 8u);
    AllocationOrRefusal gang = choose(fleet, request, rule);
    if (!gang) continue;
    if (counts) measure(fleet, *gang, result);
    take(fleet, *gang, {});
    ends.push({end, gangs.size()});
    gangs.push_back(*std::move(gang));
  }
  result.occupancy /= looks_;
  result.whole_nodes /= looks_;
  result.speed /= std::max(weight_, 1.0);
  for (GangQuality* quality : {&result.of_64, &result.of_512}) {
    const double count = std::max(quality->gangs, 1.0);
    for (double* sum : {&quality->racks, &quality->pods, &quality->step_seconds}) *sum /= count;
  }
  return result;
}

}  // namespace orrery
