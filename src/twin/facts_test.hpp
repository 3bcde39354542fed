// twin/facts_test.hpp - what control knows of a fleet that a test writes down, with the facts built
// in.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/format/document.hpp"
#include "control/control_facts.hpp"
#include "perf/repository_facts_test.hpp"
#include "workload/builtin_models.hpp"

namespace orrery {

/// Builds the control facts of a fleet spec.
inline std::unique_ptr<ControlFacts> facts_of(const std::string& fleet) {
  static const ModelCatalog kModels = *ModelCatalog::load(builtin_models(), {});
  const Result<FleetSpec> spec = read_fleet_spec(*Document::parse(fleet, "fleet.yaml"));
  EXPECT_TRUE(spec) << (spec ? "" : spec.error().text());
  auto facts = ControlFacts::make({builtin_facts(), builtin_constants(), kModels}, *spec, nullptr);
  EXPECT_TRUE(facts) << (facts ? "" : facts.error().text());
  return *std::move(facts);
}

/// Leaves of four nodes with eight H100 each, a rack each, and one unit of storage; `leaves`: more
/// keys of the network.
inline std::string lab_with_storage(int racks, const std::string& leaves = "") {
  return R"(apiVersion: orrery/v1
kind: Fleet
name: lab
sites:
- name: lab
  halls:
  - name: hall
    pods:
    - name: su
      racks:
      - name: rack
        count: )" +
         std::to_string(racks) + R"(
        cooling: in-row-or-dense-air
        nodes: [{type: dgx-h100, count: 4}]
  fabrics:
  - {name: compute, type: ib-ndr, topology: fat-tree, unit_nodes: 4)" +
         leaves + R"(}
  storage:
  - {name: lustre, system: ddn-ai400x2-lustre, units: 1}
)";
}

}  // namespace orrery
