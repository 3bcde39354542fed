// twin/faults/failure_test.hpp - fleets and draws for the tests of failure models.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "fleet/fleet_test.hpp"
#include "twin/faults/failure_file.hpp"
#include "twin/faults/failure_model.hpp"

namespace orrery {

/// Racks of four DGX H100 in one hall.
inline std::string racks_of_h100(int racks) {
  return one_hall("    - name: su\n      racks:\n      - count: " + std::to_string(racks) +
                  "\n        cooling: in-row-or-dense-air\n        nodes: [{type: dgx-h100, count: "
                  "4}]\n");
}

/// A fleet with a UPS, two cooling loops and a fabric.
inline const Topology& supplied_fleet() {
  static const Topology kTopology = [] {
    const Result<Document> document =
        Document::load(ORRERY_SOURCE_DIR "/examples/fleets/gb200-nvl72-8racks.yaml");
    EXPECT_TRUE(document) << (document ? "" : document.error().text());
    Result<Topology> topology = build_topology(*read_fleet_spec(*document), test_catalog());
    EXPECT_TRUE(topology) << (topology ? "" : topology.error().text());
    return *std::move(topology);
  }();
  return kTopology;
}

inline FailureSpec failure_spec(std::string_view name) {
  const FailureSpec* spec = test_catalog().find<FailureSpec>(name);
  EXPECT_NE(spec, nullptr) << name;
  return spec == nullptr ? FailureSpec() : *spec;
}

/// A model in which only nodes fail.
inline FailureSpec nodes_only(std::string_view name, double rate) {
  FailureSpec spec = failure_spec(name);
  spec.failures_per_1000_node_days = rate;
  spec.network = 0;
  spec.facility = 0;
  return spec;
}

inline constexpr Duration kDay = Duration::hours(24);

/// All faults of so many days.
inline std::vector<Fault> faults_of(const Topology& topology, const FailureSpec& spec, int days,
                                    std::uint64_t seed = 1) {
  std::vector<Fault> faults;
  Result<FailureModel> model = FailureModel::make(topology, spec, {.seed = seed});
  EXPECT_TRUE(model) << (model ? "" : model.error().text());
  if (!model) return faults;
  while (const std::optional<Fault> fault = model->next(Instant() + kDay * days)) {
    faults.push_back(*fault);
  }
  return faults;
}

/// The node of a fault that strikes a node or an accelerator; none for other faults.
inline NodeId node_of(const Topology& topology, const Fault& fault) {
  if (const auto* node = std::get_if<NodeId>(&fault.scope)) return *node;
  if (const auto* device = std::get_if<DeviceId>(&fault.scope)) return topology.node_of(*device);
  return {};
}

}  // namespace orrery
