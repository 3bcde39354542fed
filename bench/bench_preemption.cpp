// How fast a preemption is planned on a full fleet and how near the cheapest it comes; how fast a
// fleet full of holes is defragmented.
#include <algorithm>
#include <deque>

#include "base/numbers/rng.hpp"
#include "bench/figure.hpp"
#include "fleet/fleet.hpp"
#include "fleet/spec/builder.hpp"
#include "hardware/builtin_catalog.hpp"
#include "scheduler/moves/repack.hpp"
#include "scheduler/place/placer.hpp"
#include "scheduler/preempt/preemption.hpp"

namespace orrery {
namespace {

/// 12 halls of 33 pods of 32 nodes of 8.
std::string spec_text() {
  std::string text =
      "apiVersion: orrery/v1\nkind: Fleet\nname: bench\nsites:\n- name: site\n  halls:\n";
  for (int hall = 1; hall <= 12; ++hall) {
    text += fmt::format(R"(  - name: hall-{}
    pods:
    - name: pod
      count: 33
      racks:
      - count: 8
        cooling: in-row-or-dense-air
        nodes: [{{type: dgx-h100, count: 4}}]
)",
                        hall);
  }
  return text;
}

struct Running {
  std::deque<Allocation> allocations;
  std::deque<HeldGang> held;
  std::deque<GangRequest> requests;
  std::vector<Victim> victims;
};

/// Jobs of 1 to 48 accelerators, most of them small, until nothing more fits.
Running fill(Fleet& fleet, Placer& placer) {
  constexpr std::array<std::uint32_t, 10> kSizes{1, 1, 1, 2, 4, 8, 8, 8, 16, 48};
  Running running;
  Rng rng(1);
  for (int refused = 0; refused < 100;) {
    const std::uint32_t devices = kSizes[rng.below(kSizes.size())];
    const GangRequest request{
        .type = FleetTypeId(0), .devices = devices, .node_devices = std::min(devices, 8u)};
    AllocationOrRefusal found = placer.place(fleet.view(), request);
    if (!found) {
      ++refused;
      continue;
    }
    take(fleet, *found, {});
    running.allocations.push_back(*std::move(found));
    running.held.push_back({&running.allocations.back(), {}});
    running.requests.push_back(request);
    // Lost work since the last checkpoint, up to an hour, and a restart of five minutes.
    const auto cost = static_cast<std::int64_t>(devices * (300'000 + rng.below(3'600'000)));
    running.victims.push_back({.gangs = std::span(&running.held.back(), 1), .cost = cost});
  }
  return running;
}

/// Cost of emptying the cheapest of the fleet's runs of this many nodes.
std::int64_t cheapest_run(const Fleet& fleet, const Running& running, std::uint32_t nodes) {
  std::vector<std::int64_t> costs(fleet.topology().node_count() / nodes);
  for (const Victim& victim : running.victims) {
    std::size_t last = costs.size();
    for (const NodeDevices& entry : victim.gangs[0].allocation->ranks) {
      const std::size_t run = entry.node.value() / nodes;
      if (run != last) costs[run] += victim.cost;
      last = run;
    }
  }
  return *std::min_element(costs.begin(), costs.end());
}

struct Asked {
  const char* name;
  std::uint32_t devices;
  TopologyLevel required;
  double target_ms;
};

PlaceTry place_of(Placer& placer, const GangRequest& request) {
  return [&placer, request](const FleetView& view) -> std::optional<std::vector<PlacedGang>> {
    AllocationOrRefusal found = placer.place(view, request);
    if (!found) return std::nullopt;
    std::vector<PlacedGang> gangs(1);
    gangs[0].allocation = *std::move(found);
    return gangs;
  };
}

void bench_preemption(const Fleet& fleet, const Running& running, Placer& placer) {
  const std::string size =
      fmt::format("{} nodes x 8, {} jobs", fleet.topology().node_count(), running.victims.size());
  for (const Asked& asked : {Asked{"one accelerator", 1, TopologyLevel::kFleet, 200},
                             Asked{"a node", 8, TopologyLevel::kFleet, 200},
                             Asked{"16 nodes of a pod", 128, TopologyLevel::kPod, 200},
                             Asked{"a pod", 256, TopologyLevel::kPod, 200},
                             Asked{"512 nodes of a hall", 4096, TopologyLevel::kHall, 200},
                             Asked{"4,096 nodes", 32768, TopologyLevel::kFleet, 200},
                             Asked{"more than there is", 102400, TopologyLevel::kFleet, 200}}) {
    const GangRequest request{.type = FleetTypeId(0),
                              .devices = asked.devices,
                              .node_devices = std::min(asked.devices, 8u),
                              .required = asked.required};
    const PreemptionAsk ask{
        .place = place_of(placer, request),
        .object = [](const PreemptionPlan&) { return std::optional<std::uint32_t>(); },
        .devices = asked.devices};
    std::optional<PreemptionPlan> plan;
    const double seconds =
        seconds_of([&] { plan = plan_preemption(fleet.view(), running.victims, ask); });
    print_figure({.bench = "preemption",
                  .name = fmt::format("{}: {} ({} victims)", size, asked.name,
                                      plan ? plan->yields.size() : 0),
                  .value = seconds * 1e3,
                  .unit = "ms",
                  .target = asked.target_ms});
    if (plan && (asked.devices == 8 || asked.devices == 256)) {
      const std::int64_t least = cheapest_run(fleet, running, asked.devices / 8);
      print_figure({.bench = "preemption",
                    .name = fmt::format("{}: {}, cost over the cheapest", size, asked.name),
                    .value = static_cast<double>(plan->cost) / static_cast<double>(least),
                    .unit = "ratio",
                    .target = 1.05});
    }
  }
}

/// Ends two of five jobs, which leaves holes everywhere; the others may be moved.
std::vector<MovableGang> shred(Fleet& fleet, const Running& running) {
  Rng rng(2);
  std::vector<MovableGang> left;
  for (std::size_t i = 0; i < running.held.size(); ++i) {
    if (rng.below(5) < 2) {
      give_back(fleet, running.allocations[i], {});
    } else {
      left.push_back({running.held[i], &running.requests[i], running.victims[i].cost / 4});
    }
  }
  return left;
}

void bench_moves(const Fleet& fleet, std::span<const MovableGang> movable, Placer& placer) {
  const std::string size =
      fmt::format("{} nodes x 8, {} gangs", fleet.topology().node_count(), movable.size());
  const GangRequest request{
      .type = FleetTypeId(0), .devices = 256, .node_devices = 8, .required = TopologyLevel::kPod};
  const RoomGoal goal{place_of(placer, request), 256, std::int64_t{256} * 100'000'000};
  const std::vector<RoomGoal> goals(8, goal);
  std::vector<RoomPlan> rooms;
  const double room_seconds =
      seconds_of([&] { rooms = make_room(fleet.view(), movable, goals, placer); });
  std::size_t moves = 0;
  for (const RoomPlan& room : rooms) moves += room.moves.size();
  print_figure({.bench = "preemption",
                .name = fmt::format("{}: room for 8 gangs of a pod each ({} plans, {} moves)", size,
                                    rooms.size(), moves),
                .value = room_seconds * 1e3,
                .unit = "ms"});
  for (const TopologyLevel level : {TopologyLevel::kPod, TopologyLevel::kRack}) {
    RepackPlan plan;
    const RepackTerms terms{.level = level, .gain_per_device = 100'000'000};
    const double seconds = seconds_of([&] { plan = repack(fleet.view(), movable, terms, placer); });
    print_figure({.bench = "preemption",
                  .name = fmt::format("{}: repack of {} ({} moves, {} whole before, {} after)",
                                      size, level == TopologyLevel::kPod ? "pods" : "racks",
                                      plan.moves.size(), plan.whole_before, plan.whole_after),
                  .value = seconds * 1e3,
                  .unit = "ms",
                  .target = 10'000});
  }
}

}  // namespace
}  // namespace orrery

int main() {
  using namespace orrery;
  const Catalog catalog = *Catalog::load(builtin_catalog(), {});
  const Document document = *Document::parse(spec_text(), "bench.yaml");
  Fleet fleet(*build_topology(*read_fleet_spec(document), catalog));
  const PlaceTree tree(fleet.topology());
  Placer placer(tree);
  const Running running = fill(fleet, placer);
  bench_preemption(fleet, running, placer);
  bench_moves(fleet, shred(fleet, running), placer);
}
