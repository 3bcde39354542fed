// How fast a queue of large gangs is given slots in the future of a full fleet.
#include <malloc.h>

#include <cmath>
#include <deque>

#include "base/numbers/rng.hpp"
#include "bench/figure.hpp"
#include "fleet/fleet.hpp"
#include "fleet/spec/builder.hpp"
#include "hardware/builtin_catalog.hpp"
#include "scheduler/forecast/timeline.hpp"
#include "scheduler/place/placer.hpp"

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

/// Draws a length from ten minutes to two days, evenly by order of magnitude.
Duration any_length(Rng& rng) {
  const double part = static_cast<double>(rng.below(1000)) / 1000;
  return Duration::from_seconds(600 * std::pow(288, part));
}

HostNeeds any_host(Rng& rng) {
  return {.cpu = 4000 + static_cast<std::uint32_t>(rng.below(10)) * 1000, .memory = 128 << 10};
}

struct Running {
  std::deque<Allocation> allocations;
  std::vector<Ending> endings;
};

/// Jobs of 1 to 48 accelerators, most of them small, until nothing more fits.
Running fill(Fleet& fleet, Placer& placer) {
  constexpr std::array<std::uint32_t, 10> kSizes{1, 1, 1, 2, 4, 8, 8, 8, 16, 48};
  Running running;
  Rng rng(1);
  for (int refused = 0; refused < 100;) {
    const std::uint32_t devices = kSizes[rng.below(kSizes.size())];
    const GangRequest request{.type = FleetTypeId(0),
                              .devices = devices,
                              .node_devices = std::min(devices, 8u),
                              .host = any_host(rng)};
    AllocationOrRefusal found = placer.place(fleet.view(), request);
    if (!found) {
      ++refused;
      continue;
    }
    take(fleet, *found, request.host);
    running.allocations.push_back(*std::move(found));
    running.endings.push_back(
        {&running.allocations.back(), request.host, Instant() + any_length(rng)});
  }
  return running;
}

struct Wish {
  GangRequest request;
  SlotWish slot;
};

/// `jobs` of `classes`, all of 16 to 4,096 accelerators: half as many of twice the size.
std::vector<Wish> queue_of(std::uint32_t jobs, std::uint32_t classes) {
  Rng rng(2);
  std::vector<Wish> kinds;
  for (std::uint32_t i = 0; i < classes; ++i) {
    std::uint32_t devices = 16;
    while (devices < 4096 && rng.below(2) == 0) devices *= 2;
    Wish wish{.request = {.type = FleetTypeId(0),
                          .devices = devices,
                          .node_devices = 8,
                          .host = any_host(rng)},
              .slot = {any_length(rng), ClassId(i)}};
    if (rng.below(2) == 0) {
      wish.request.required = devices <= 256 ? TopologyLevel::kPod : TopologyLevel::kHall;
    }
    kinds.push_back(wish);
  }
  std::vector<Wish> queue;
  for (std::uint32_t i = 0; i < jobs; ++i) {
    queue.push_back(kinds[rng.below(classes)]);
    queue.back().slot.length = any_length(rng);
  }
  return queue;
}

double heap_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<double>(info.uordblks) + static_cast<double>(info.hblkhd);
}

struct Outcome {
  std::uint32_t slots = 0;
  std::uint64_t attempts = 0;
};

Outcome reserve_all(Timeline& timeline, Placer& placer, std::span<const Wish> queue) {
  Outcome outcome;
  for (const Wish& wish : queue) {
    const PlaceTry attempt = [&](const FleetView& view) -> std::optional<std::vector<PlacedGang>> {
      ++outcome.attempts;
      AllocationOrRefusal found = placer.place(view, wish.request);
      if (!found) return std::nullopt;
      std::vector<PlacedGang> gangs(1);
      gangs[0].allocation = *std::move(found);
      gangs[0].host = wish.request.host;
      return gangs;
    };
    const std::optional<Slot> slot = timeline.earliest(attempt, wish.slot);
    if (!slot) continue;
    timeline.reserve(*slot, wish.slot.length);
    ++outcome.slots;
  }
  return outcome;
}

void print_time(const std::string& name, double seconds, double target_ms) {
  print_figure({.bench = "timeline",
                .name = name,
                .value = seconds * 1e3,
                .unit = "ms",
                .target = target_ms});
}

int run() {
  const Catalog catalog = *Catalog::load(builtin_catalog(), {});
  const Document document = *Document::parse(spec_text(), "bench.yaml");
  Result<Topology> topology = build_topology(*read_fleet_spec(document), catalog);
  if (!topology) {
    fmt::print(stderr, "bench_timeline: {}\n", topology.error().text());
    return 1;
  }
  Fleet fleet(*std::move(topology));
  const PlaceTree tree(fleet.topology());
  Placer placer(tree);
  const Running running = fill(fleet, placer);
  const std::string size = fmt::format("{} nodes x 8, {} jobs run", fleet.topology().node_count(),
                                       running.endings.size());
  const double before = heap_bytes();
  Timeline timeline;
  const std::vector<Wish> one = queue_of(1, 1);
  for (const char* pass : {"first pass", "later pass"}) {
    const double seconds = seconds_of([&] {
      timeline.open(fleet.view(), Instant(), running.endings);
      (void)reserve_all(timeline, placer, one);
    });
    print_time(fmt::format("{}: the head of the queue reserves, {}", size, pass), seconds, 20);
  }
  for (const std::uint32_t classes : {5'000u, 50'000u}) {
    const std::vector<Wish> queue = queue_of(50'000, classes);
    Outcome outcome;
    const double seconds = seconds_of([&] {
      timeline.open(fleet.view(), Instant(), running.endings);
      outcome = reserve_all(timeline, placer, queue);
    });
    print_time(fmt::format("{}: 50,000 of {} classes ask for a slot ({} get one, {} attempts)",
                           size, classes, outcome.slots, outcome.attempts),
               seconds, 1000);
  }
  print_figure({.bench = "timeline",
                .name = size + ": memory of a timeline",
                .value = (heap_bytes() - before) / (1 << 20),
                .unit = "MiB",
                .target = 256});
  return 0;
}

}  // namespace
}  // namespace orrery

int main() { return orrery::run(); }
