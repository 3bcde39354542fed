// fleet/fleet_test.hpp - fleets for the tests of this module.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "fleet/spec/builder.hpp"
#include "hardware/builtin_catalog.hpp"

namespace orrery {

/// The built-in catalog, loaded once.
inline const Catalog& test_catalog() {
  static const Catalog kCatalog = [] {
    Result<Catalog> loaded = Catalog::load(builtin_catalog(), {});
    EXPECT_TRUE(loaded) << (loaded ? "" : loaded.error().text());
    return loaded ? *std::move(loaded) : Catalog();
  }();
  return kCatalog;
}

inline Result<FleetSpec> spec_of(const std::string& yaml) {
  Result<Document> document = Document::parse(yaml, "fleet.yaml");
  if (!document) return forward_error(document);
  return read_fleet_spec(*document);
}

inline Result<Topology> topology_of_yaml(const std::string& yaml) {
  Result<FleetSpec> spec = spec_of(yaml);
  if (!spec) return forward_error(spec);
  return build_topology(*spec, test_catalog());
}

/// Builds a topology; a failure fails the test.
inline Topology built(const std::string& yaml) {
  Result<Topology> topology = topology_of_yaml(yaml);
  EXPECT_TRUE(topology) << (topology ? "" : topology.error().text());
  return topology ? *std::move(topology) : Topology();
}

/// Returns "file:line:column: message" of a spec that must not build.
inline std::string refusal(const std::string& yaml) {
  Result<Topology> topology = topology_of_yaml(yaml);
  EXPECT_FALSE(topology) << "the spec was accepted";
  return topology ? "" : topology.error().text();
}

/// Returns a spec of one site and one hall around `pods` (its lines indented by four).
inline std::string one_hall(const std::string& pods, const std::string& site_keys = "") {
  return "apiVersion: orrery/v1\nkind: Fleet\nname: test\nsites:\n- name: east\n" + site_keys +
         "  halls:\n  - name: hall\n    pods:\n" + pods;
}

/// Two pods of two racks of four DGX H100: 16 nodes, 128 accelerators.
inline std::string small_h100() {
  return one_hall(
      "    - name: su\n      count: 2\n      racks:\n      - count: 2\n        cooling: "
      "in-row-or-dense-air\n        nodes: [{type: dgx-h100, count: 4}]\n");
}

}  // namespace orrery
