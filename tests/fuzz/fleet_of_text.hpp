// tests/fuzz/fleet_of_text.hpp - the fleet on which a fuzz target judges its input.
#pragma once

#include <string_view>
#include <utility>

#include "base/assert.hpp"
#include "fleet/spec/builder.hpp"
#include "hardware/builtin_catalog.hpp"

namespace orrery {

/// Two racks with nodes of two types, and a network.
inline constexpr std::string_view kTwoTypes = R"(
apiVersion: orrery/v1
kind: Fleet
name: small
sites:
- name: site
  halls: [{pods: [{racks: [{count: 2, cooling: in-row-or-dense-air,
      nodes: [{type: dgx-h100, count: 4}, {type: dgx-a100-80g, count: 2}]}]}]}]
  fabrics: [{name: ib, type: ib-ndr, topology: fat-tree, node_types: [dgx-h100]}]
)";

/// Returns the fleet of a Fleet file, of types of the built-in catalog. Precondition: the text is
/// valid.
inline Topology fleet_of_text(std::string_view yaml) {
  static const Result<Catalog> kCatalog = Catalog::load(builtin_catalog(), {});
  ORRERY_ASSERT(kCatalog, "the built-in catalog loads");
  const Result<Document> document = Document::parse(yaml, "fleet.yaml");
  ORRERY_ASSERT(document, "the fleet is YAML");
  const Result<FleetSpec> spec = read_fleet_spec(*document);
  ORRERY_ASSERT(spec, "the text is a fleet");
  Result<Topology> topology = build_topology(*spec, *kCatalog);
  ORRERY_ASSERT(topology, "the fleet builds");
  return *std::move(topology);
}

}  // namespace orrery
