// Time to place or to refuse a slice of a torus.
#include <memory>

#include "base/numbers/rng.hpp"
#include "bench/figure.hpp"
#include "fleet/fleet.hpp"
#include "fleet/spec/builder.hpp"
#include "fleet/spec/generate.hpp"
#include "hardware/builtin_catalog.hpp"
#include "scheduler/place/place_slice.hpp"

namespace orrery {
namespace {

struct Pod {
  explicit Pod(Topology topology) : fleet(std::move(topology)), tree(fleet.topology()) {}

  Fleet fleet;
  PlaceTree tree;
};

std::unique_ptr<Pod> pod_of(const Catalog& catalog, const std::string& system) {
  const FleetSpec spec = *generate_fleet(catalog, system, {});
  return std::make_unique<Pod>(*build_topology(spec, catalog));
}

GangRequest request_of(const Pod& pod, Sides slice) {
  GangRequest request;
  request.type = FleetTypeId(0);
  request.slice = slice;
  request.devices = volume(slice);
  request.node_devices =
      std::min(request.devices, pod.fleet.topology().node_devices_max(request.type));
  return request;
}

/// Every `nth` node keeps but one device free, the others all.
void occupy(Pod& pod, std::uint32_t nth) {
  for (std::uint32_t i = 0; i < pod.fleet.topology().node_count(); ++i) {
    const std::uint64_t all =
        (std::uint64_t{1} << pod.fleet.topology().group(NodeId(i)).devices) - 1;
    pod.fleet.set_free(NodeId(i), nth > 0 && i % nth == 0 ? 1 : all);
  }
}

/// Measures the mean of many placements.
void bench_slice(Pod& pod, const std::string& name, Sides slice) {
  constexpr int kTimes = 500;
  const GangRequest request = request_of(pod, slice);
  const PlaceOptions options;
  std::size_t nodes = 0;
  const double seconds = seconds_of([&] {
    for (int i = 0; i < kTimes; ++i) {
      const AllocationOrRefusal placed = place_slice(pod.tree, pod.fleet.view(), request, options);
      nodes += placed ? placed->ranks.size() : 0;
    }
  });
  print_figure({.bench = "slices",
                .name = name + (nodes > 0 ? ": placed" : ": refused"),
                .value = seconds / kTimes * 1e6,
                .unit = "us",
                .target = 100});
}

void bench_all() {
  const Catalog catalog = *Catalog::load(builtin_catalog(), {});
  const std::unique_ptr<Pod> v5p = pod_of(catalog, "tpu-v5p-pod");
  bench_slice(*v5p, "140 empty cubes, 4x4x8", {4, 4, 8});
  bench_slice(*v5p, "140 empty cubes, 16x16x24", {16, 16, 24});
  bench_slice(*v5p, "140 empty cubes, 2x2x2", {2, 2, 2});
  occupy(*v5p, 16);
  bench_slice(*v5p, "140 cubes with three chips in use each, 4x4x8", {4, 4, 8});
  bench_slice(*v5p, "140 cubes with three chips in use each, 2x4x4", {2, 4, 4});
  occupy(*v5p, 3);
  bench_slice(*v5p, "140 cubes with 16 to 18 chips in use each, 2x4x4", {2, 4, 4});
  const std::unique_ptr<Pod> v5e = pod_of(catalog, "tpu-v5e-pod");
  bench_slice(*v5e, "an empty torus of 16x16, 4x8", {4, 8, 1});
  occupy(*v5e, 5);
  bench_slice(*v5e, "a torus of 16x16 with 7 hosts in use, 8x8", {8, 8, 1});
  bench_slice(*v5e, "a torus of 16x16 with 7 hosts in use, 2x4", {2, 4, 1});
}

}  // namespace
}  // namespace orrery

int main() { orrery::bench_all(); }
