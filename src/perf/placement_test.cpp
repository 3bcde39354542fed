#include "perf/placement.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "fleet/builder.hpp"
#include "fleet/fleet.hpp"
#include "fleet/generate.hpp"
#include "perf/repository_facts_test.hpp"
#include "perf/training_step.hpp"
#include "workload/builtin_models.hpp"
#include "workload/model_catalog.hpp"

namespace orrery {
namespace {

// Two scalable units of 32 DGX H100 under InfiniBand NDR, rail-optimised.
const Topology& superpod() {
  static const Topology kTopology = [] {
    const Result<FleetSpec> spec = generate_fleet(builtin_facts(), "dgx-superpod-h100", 64);
    EXPECT_TRUE(spec) << (spec ? "" : spec.error().text());
    Result<Topology> topology = build_topology(*spec, builtin_facts());
    EXPECT_TRUE(topology) << (topology ? "" : topology.error().text());
    return *std::move(topology);
  }();
  return kTopology;
}

RankMap ranks_on(const Fleet& fleet, const std::vector<std::uint32_t>& nodes,
                 std::uint32_t devices_a_node) {
  RankMap map;
  for (const std::uint32_t node : nodes) {
    const std::uint32_t first = fleet.topology().place(NodeId(node)).first_device.value();
    for (std::uint32_t i = 0; i < devices_a_node; ++i) map.devices.emplace_back(first + i);
  }
  return map;
}

TEST(Placement, tells_a_unit_from_a_pod_and_whole_nodes_from_halves) {
  const Fleet fleet(superpod());
  const Placement near = placement_of(ranks_on(fleet, {0, 1, 2, 3}, 8), fleet.view());
  EXPECT_EQ(near.domain_ranks, 8);
  EXPECT_EQ(near.tier, NetworkTier::kLeaf);
  EXPECT_EQ(near.scale_out_quality, 1);
  const Placement far = placement_of(ranks_on(fleet, {0, 63}, 4), fleet.view());
  EXPECT_EQ(far.domain_ranks, 4);
  EXPECT_GT(far.tier, NetworkTier::kLeaf);
  EXPECT_EQ(placement_of(ranks_on(fleet, {5}, 8), fleet.view()).tier, NetworkTier::kNode);
}

TEST(Placement, a_sick_or_busy_port_slows_the_whole_gang) {
  Fleet fleet(superpod());
  const FabricInstance& fabric = fleet.topology().fabrics()[0];
  const FabricLinkId port = fabric.graph.link_of_port({.node = 2, .port = 0});
  fleet.set_link(LinkId(fabric.first_link + port.value()), {.health = 0, .load = 0});
  const double ports = fabric.graph.ports_per_node();
  const Placement with = placement_of(ranks_on(fleet, {1, 2}, 8), fleet.view());
  EXPECT_NEAR(with.scale_out_quality, (ports - 1) / ports, 1e-9);
  const Placement without = placement_of(ranks_on(fleet, {0, 1}, 8), fleet.view());
  EXPECT_EQ(without.scale_out_quality, 1);
}

TEST(Placement, repricing_on_the_canonical_machine_changes_nothing_and_worse_links_cost_more) {
  const Result<ModelCatalog> models = ModelCatalog::load(builtin_models(), "");
  const TrainingJob job{.model = &models->find("llama-3.1-70b")->model,
                        .sequence = Tokens{8192},
                        .global_batch = 256};
  const Accelerator* h100 = builtin_facts().find<Accelerator>("h100");
  const Result<Machine> machine =
      machine_of(builtin_facts(), {.accelerator = h100, .accelerators = 64});
  ASSERT_TRUE(machine);
  const Result<TrainingModel> model = TrainingModel::make(job, *machine, builtin_constants());
  ASSERT_TRUE(model);
  const ParallelPlan plan{
      .tp = 8, .pp = 2, .dp = 4, .zero = 1, .sequence_parallel = SequenceParallel::kOn};
  const double canonical = model->evaluate(plan).seconds;
  EXPECT_DOUBLE_EQ(model->reprice(plan, {.domain_ranks = 8}).total(), canonical);
  double last = canonical;
  for (const double quality : {0.8, 0.4, 0.1}) {
    const double now =
        model->reprice(plan, {.domain_ranks = 8, .scale_out_quality = quality}).total();
    EXPECT_GT(now, last);
    last = now;
  }
  EXPECT_GT(model->reprice(plan, {.domain_ranks = 4}).total(), canonical)
      << "tensor-parallel groups that leave their domain";
}

}  // namespace
}  // namespace orrery
