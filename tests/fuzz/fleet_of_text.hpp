// tests/fuzz/fleet_of_text.hpp - the fleet on which a fuzz target judges its input.
#pragma once

#include <string_view>
#include <utility>

#include "base/assert.hpp"
#include "fleet/spec/builder.hpp"
#include "hardware/builtin_catalog.hpp"

namespace orrery {

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
