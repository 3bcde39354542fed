// tests/fuzz/fuzz_fleet.cpp - any text as a fleet, or as nodes of Kubernetes: what is read is
// written and read again to the same text, and what is not too large is built. A list is a
// topology.yaml of Slurm, under whose switches some nodes are placed.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.hpp"
#include "fleet/import/kubernetes_import.hpp"
#include "fleet/import/slurm_topology_yaml.hpp"
#include "fleet/spec/builder.hpp"
#include "fleet/spec/spec.hpp"
#include "hardware/builtin_catalog.hpp"
#include "workload/kubernetes_list.hpp"

namespace orrery {
namespace {

const Catalog& builtin() {
  static const Result<Catalog> kCatalog = Catalog::load(builtin_catalog(), {});
  ORRERY_ASSERT(kCatalog, "the built-in catalog loads");
  return *kCatalog;
}

double nodes_in(const FleetSpec& spec) {
  double nodes = 0;
  for (const SiteSpec& site : spec.sites) {
    for (const HallSpec& hall : site.halls) {
      for (const PodSpec& pod : hall.pods) {
        for (const RackSpec& rack : pod.racks) {
          for (const NodeGroupSpec& group : rack.nodes) {
            nodes += static_cast<double>(group.count) * rack.count * pod.count;
          }
        }
      }
    }
  }
  return nodes;
}

void check_written(const FleetSpec& spec) {
  const std::string text = write_fleet_spec(spec);
  const Result<Document> document = Document::parse(text, "written.yaml");
  ORRERY_ASSERT(document, "what is written is YAML");
  const Result<FleetSpec> again = read_fleet_spec(*document);
  ORRERY_ASSERT(again, "what is written is a fleet");
  ORRERY_ASSERT(write_fleet_spec(*again) == text, "and the same fleet");
}

// The builder must refuse sizes above its limit; sizes from kQuick up to it are skipped, as they
// only take longer than a fuzzer has.
void check_built(const FleetSpec& spec) {
  constexpr double kQuick = 20'000;
  constexpr double kNodesMax = 1 << 20;
  const double nodes = nodes_in(spec);
  if (nodes > kQuick && nodes <= kNodesMax) return;
  const Result<Topology> topology = build_topology(spec, builtin());
  ORRERY_ASSERT(!topology || static_cast<double>(topology->node_count()) == nodes,
                "every node of the spec is built");
}

// Places n1 to n8 under what the text describes; n9 is of a node that is left out.
void place_nodes(const Document& document) {
  const Result<SlurmTopology> topology = read_topology_yaml(document);
  if (!topology) return;
  ImportedCluster cluster;
  SlurmNodeIndex index = {{"n9", kFutureNode}};
  for (std::uint32_t i = 0; i < 8; ++i) {
    cluster.nodes.push_back({fmt::format("n{}", i + 1), nullptr, 0});
    index.emplace(cluster.nodes.back().name, i);
  }
  if (!place_under_switches(topology->switches, index, cluster)) return;
  std::vector<int> places(cluster.nodes.size(), 0);
  for (const ImportedPod& pod : cluster.pods) {
    ORRERY_ASSERT(!pod.leaves.empty(), "a pod has leaves");
    for (const ImportedLeaf& leaf : pod.leaves) {
      ORRERY_ASSERT(!leaf.nodes.empty(), "a leaf has nodes");
      for (const std::uint32_t node : leaf.nodes) ++places[node];
    }
  }
  ORRERY_ASSERT(std::all_of(places.begin(), places.end(), [](int count) { return count == 1; }),
                "every node is under exactly one leaf");
}

}  // namespace
}  // namespace orrery

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (begins_kubernetes_list(text)) {
    const Result<FleetSpec> imported = read_kubernetes_fleet(builtin(), text, "nodes.json");
    if (imported) check_written(*imported);
    return 0;
  }
  const Result<Document> document = Document::parse(text, "fleet.yaml");
  if (!document) return 0;
  if (document->root().kind() == NodeKind::kSequence) {
    place_nodes(*document);
    return 0;
  }
  const Result<FleetSpec> spec = read_fleet_spec(*document);
  if (!spec) return 0;
  check_written(*spec);
  check_built(*spec);
  return 0;
}
