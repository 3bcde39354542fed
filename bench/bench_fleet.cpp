// How fast a fleet is built, edited, published and asked, at the sizes it is made for.
#include <malloc.h>

#include <memory>

#include "base/numbers/rng.hpp"
#include "bench/figure.hpp"
#include "fleet/fleet.hpp"
#include "fleet/spec/builder.hpp"
#include "hardware/builtin_catalog.hpp"

namespace orrery {
namespace {

// Keeps the compiler from dropping an unused result.
template <class T>
void keep(const T& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

/// Pods of 8 racks of 4 DGX H100 on a rail-only network that joins them all.
std::string spec_text(int nodes) {
  return fmt::format(R"(apiVersion: orrery/v1
kind: Fleet
name: bench
sites:
- name: site
  halls:
  - name: hall
    rows: {{racks: 8, capacity: 400 kW}}
    pods:
    - name: su
      count: {}
      racks:
      - count: 8
        cooling: in-row-or-dense-air
        nodes: [{{type: dgx-h100, count: 4}}]
  fabrics:
  - {{type: roce-400-th5, topology: rail-only-fat-tree}}
)",
                     nodes / 32);
}

double heap_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<double>(info.uordblks) + static_cast<double>(info.hblkhd);
}

std::unique_ptr<Fleet> built(const Catalog& catalog, const std::string& text) {
  const Document document = *Document::parse(text, "bench.yaml");
  return std::make_unique<Fleet>(*build_topology(*read_fleet_spec(document), catalog));
}

void bench_build(const Catalog& catalog, int nodes, double seconds_max, double mib_max) {
  const std::string text = spec_text(nodes);
  const double before = heap_bytes();
  std::unique_ptr<Fleet> fleet;
  const double seconds = seconds_of([&] { fleet = built(catalog, text); });
  const double mib = (heap_bytes() - before) / (1 << 20);
  const std::string size = fmt::format("{} nodes x 8", nodes);
  print_figure({.bench = "fleet",
                .name = size + ": built from its spec",
                .value = seconds,
                .unit = "s",
                .target = seconds_max});
  print_figure({.bench = "fleet",
                .name = size + ": memory",
                .value = mib,
                .unit = "MiB",
                .target = mib_max});
}

/// Nodes to change and what to, made beforehand.
struct Change {
  NodeId node;
  std::uint64_t free_mask;
};

std::vector<Change> changes_of(const Fleet& fleet, std::size_t count) {
  Rng rng(1);
  std::vector<Change> changes;
  for (std::size_t i = 0; i < count; ++i) {
    changes.push_back({NodeId(static_cast<std::uint32_t>(rng.below(fleet.topology().node_count()))),
                       rng.next_u64() & 0xff});
  }
  return changes;
}

void bench_edit(Fleet& fleet, const std::string& size) {
  const std::vector<Change> changes = changes_of(fleet, 2'000'000);
  const double edit = seconds_of([&] {
    for (const Change& change : changes) fleet.set_free(change.node, change.free_mask);
  });
  print_figure({.bench = "fleet",
                .name = size + ": change of a node in place",
                .value = edit / static_cast<double>(changes.size()) * 1e9,
                .unit = "ns",
                .target = 100});
}

// A snapshot and the page copies that the edits after it pay for, against copying the state whole.
void bench_publish(Fleet& fleet, const std::string& size) {
  constexpr std::size_t kPublishes = 100'000;
  for (const std::size_t edits : {std::size_t{1}, std::size_t{10}}) {
    const std::vector<Change> changes = changes_of(fleet, kPublishes * edits);
    std::shared_ptr<const FleetSnapshot> latest;
    const double both = seconds_of([&] {
      for (std::size_t i = 0; i < changes.size(); ++i) {
        fleet.set_free(changes[i].node, changes[i].free_mask);
        if (i % edits == 0) latest = fleet.publish();
      }
    });
    latest.reset();
    const double alone = seconds_of([&] {
      for (const Change& change : changes) fleet.set_free(change.node, change.free_mask);
    });
    const std::size_t nodes = fleet.topology().node_count();
    const std::size_t counts = fleet.topology().count_cells();
    std::vector<NodeState> from_nodes(nodes);
    std::vector<std::uint32_t> from_counts(counts);
    constexpr int kCopies = 200;
    const double copy = seconds_of([&] {
                          for (int i = 0; i < kCopies; ++i) {
                            keep(std::vector<NodeState>(from_nodes));
                            keep(std::vector<std::uint32_t>(from_counts));
                          }
                        }) /
                        kCopies;
    print_figure({.bench = "fleet",
                  .name = fmt::format("{}: publishing a snapshot after {} change(s)", size, edits),
                  .value = (both - alone) / kPublishes * 1e6,
                  .unit = "us",
                  .target = 2,
                  .peer = "copying nodes and counts",
                  .peer_value = copy * 1e6});
  }
}

void bench_query(const Fleet& fleet, const std::string& size) {
  const FleetView view = fleet.view();
  const auto domains = static_cast<std::uint32_t>(fleet.topology().domains().size());
  Rng rng(2);
  std::vector<DomainId> asked;
  for (int i = 0; i < 2'000'000; ++i) {
    asked.emplace_back(static_cast<std::uint32_t>(rng.below(domains)));
  }
  std::uint64_t sum = 0;
  const double query = seconds_of([&] {
    for (const DomainId domain : asked) sum += view.free(domain, FleetTypeId(0)).devices;
  });
  keep(sum);
  const double units = seconds_of([&] {
    for (const DomainId domain : asked) sum += view.units(domain, FleetTypeId(0), 4);
  });
  keep(sum);
  print_figure({.bench = "fleet",
                .name = size + ": units of 4 devices free in a domain",
                .value = units / static_cast<double>(asked.size()) * 1e9,
                .unit = "ns",
                .target = 100});
  constexpr int kWalks = 20;
  const double walk = seconds_of([&] {
                        for (int i = 0; i < kWalks; ++i) {
                          for (std::uint32_t n = 0; n < fleet.topology().node_count(); ++n) {
                            sum += view.node(NodeId(n)).available();
                          }
                        }
                        keep(sum);
                      }) /
                      kWalks;
  print_figure({.bench = "fleet",
                .name = size + ": free count of a domain",
                .value = query / static_cast<double>(asked.size()) * 1e9,
                .unit = "ns",
                .target = 100,
                .peer = "counting all nodes",
                .peer_value = walk * 1e9});
}

// A hypothesis of ten nodes in an object used again, as a pass of a scheduler makes them.
void bench_overlay(const Fleet& fleet, const std::string& size) {
  constexpr std::size_t kEdits = 10;
  const std::vector<Change> changes = changes_of(fleet, 20'000 * kEdits);
  FleetOverlay supposed(fleet.view());
  const double seconds = seconds_of([&] {
    for (std::size_t i = 0; i < changes.size(); ++i) {
      if (i % kEdits == 0) supposed.reset(fleet.view());
      NodeState state = supposed.view().node(changes[i].node);
      state.free_mask = changes[i].free_mask;
      supposed.set_node(changes[i].node, state);
    }
  });
  print_figure({.bench = "fleet",
                .name = size + ": hypothesis of 10 nodes",
                .value = seconds / static_cast<double>(changes.size() / kEdits) * 1e6,
                .unit = "us",
                .target = 20});
}

int run() {
  const Catalog catalog = *Catalog::load(builtin_catalog(), {});
  bench_build(catalog, 16'384, 0.5, 64);
  bench_build(catalog, 131'072, 4, 512);
  for (const int nodes : {16'384, 131'072}) {
    const std::unique_ptr<Fleet> fleet = built(catalog, spec_text(nodes));
    const std::string size = fmt::format("{} nodes x 8", nodes);
    bench_edit(*fleet, size);
    bench_publish(*fleet, size);
    bench_query(*fleet, size);
    bench_overlay(*fleet, size);
  }
  return 0;
}

}  // namespace
}  // namespace orrery

int main() { return orrery::run(); }
