#include "twin/traffic/job_traffic.hpp"

#include <gtest/gtest.h>

#include "base/numbers/rng.hpp"
#include "fleet/fleet.hpp"
#include "fleet/fleet_test.hpp"
#include "fleet/spec/generate.hpp"
#include "perf/repository_facts_test.hpp"
#include "perf/training/training_step.hpp"
#include "workload/builtin_models.hpp"
#include "workload/models/model_catalog.hpp"

namespace orrery {
namespace {

constexpr double kCable = 50e9;  ///< 400 Gb/s

Topology fabric_of(const std::string& keys, int racks = 4) {
  return built(one_hall("    - name: su\n      racks:\n      - count: " + std::to_string(racks) +
                            "\n        cooling: in-row-or-dense-air\n        nodes: [{type: "
                            "dgx-h100, count: 4}]\n",
                        "  fabrics:\n  - {name: compute, type: ib-ndr, " + keys + "}\n"));
}

/// Four leaves of four nodes; 32 ports down and 11 up each.
Topology oversubscribed() {
  return fabric_of("topology: fat-tree, leaf_oversubscription: 3, unit_nodes: 4");
}

std::vector<NodeDevices> nodes(std::uint32_t first, std::uint32_t count) {
  std::vector<NodeDevices> gang;
  for (std::uint32_t i = 0; i < count; ++i) gang.push_back({NodeId(first + i), 0xff});
  return gang;
}

StepTraffic sends(ExchangePattern pattern, double reach, double rate) {
  StepTraffic traffic{.seconds = Seconds(2), .window = Seconds(1)};
  traffic.add({.pattern = pattern, .reach = reach, .node_bytes = Bytes(rate)});
  return traffic;
}

TEST(JobTraffic, a_cut_holds_the_uplinks_of_a_leaf_and_a_pair_of_them_in_common_traffic) {
  const Fleet fleet(oversubscribed());
  SharedLinks links;
  JobTraffic jobs(links, fleet.view());
  const ResourceId first = jobs.cut_of(FabricId(0), NodeId(0), NetworkTier::kLeaf);
  EXPECT_EQ(jobs.cut_of(FabricId(0), NodeId(3), NetworkTier::kLeaf), first);
  const ResourceId second = jobs.cut_of(FabricId(0), NodeId(4), NetworkTier::kLeaf);
  EXPECT_NE(second, first);
  EXPECT_DOUBLE_EQ(links.capacity(first).value(), 11 * kCable);
  // All to all of two leaves: half of what four nodes send leaves each leaf.
  const StepTraffic all = sends(ExchangePattern::kSpread, 8, 400e9);
  const std::vector<ResourceUse> uses = jobs.uses_of(nodes(0, 8), all);
  ASSERT_EQ(uses.size(), 2U);
  EXPECT_EQ(uses[0].resource, first);
  EXPECT_EQ(uses[1].resource, second);
  EXPECT_DOUBLE_EQ(uses[0].multiplicity, 2);
  const FlowId flow = *jobs.start(nodes(0, 8), all);
  links.update();
  EXPECT_DOUBLE_EQ(links.rate(flow).value(), 11 * kCable / 2);
  EXPECT_DOUBLE_EQ(stretched_step(all, links.rate(flow)).value(), 1 + 400.0 / 275);
  jobs.stop(flow);
  links.update();
  EXPECT_EQ(links.load(first).value(), 0);
}

TEST(JobTraffic, what_stays_under_a_leaf_or_on_a_node_has_no_flow) {
  const Fleet fleet(oversubscribed());
  SharedLinks links;
  JobTraffic jobs(links, fleet.view());
  const StepTraffic ring = sends(ExchangePattern::kShift, 1, 400e9);
  EXPECT_FALSE(jobs.start(nodes(0, 4), ring));
  EXPECT_FALSE(jobs.start(nodes(5, 1), ring));
  EXPECT_FALSE(jobs.start(nodes(0, 16), StepTraffic{.seconds = Seconds(1)}));
  EXPECT_TRUE(jobs.start(nodes(3, 2), ring));
}

TEST(JobTraffic, gangs_that_meet_on_a_leaf_slow_each_other_and_nobody_else) {
  const Fleet fleet(oversubscribed());
  SharedLinks links;
  JobTraffic jobs(links, fleet.view());
  const StepTraffic ring = sends(ExchangePattern::kShift, 1, 400e9);
  const FlowId left = *jobs.start(nodes(0, 6), ring);
  links.update();
  EXPECT_DOUBLE_EQ(links.rate(left).value(), 400e9) << "alone a ring needs 8 of 11 cables";
  const FlowId right = *jobs.start(nodes(6, 4), ring);
  const FlowId apart = *jobs.start(nodes(11, 2), ring);
  links.update();
  EXPECT_DOUBLE_EQ(links.rate(left).value(), 275e9) << "they meet on the second leaf";
  EXPECT_DOUBLE_EQ(links.rate(right).value(), 275e9);
  EXPECT_DOUBLE_EQ(links.rate(apart).value(), 275e9) << "meets the second on the third leaf";
  jobs.stop(right);
  links.update();
  EXPECT_DOUBLE_EQ(links.rate(left).value(), 400e9);
  EXPECT_DOUBLE_EQ(links.rate(apart).value(), 400e9);
}

TEST(JobTraffic, weak_and_lost_links_shrink_their_cut_as_a_fresh_model_would_have_it) {
  Fleet fleet(oversubscribed());
  SharedLinks links;
  JobTraffic jobs(links, fleet.view());
  const FabricInstance& fabric = fleet.topology().fabrics()[0];
  Rng rng(4);
  for (int i = 0; i < 200; ++i) {
    const LinkId link(fabric.first_link +
                      static_cast<std::uint32_t>(rng.below(fabric.graph.link_count())));
    fleet.set_link(link, {.health = static_cast<float>(rng.below(3)) / 2});
    jobs.link_changed(fleet.view(), link);
  }
  SharedLinks fresh;
  const JobTraffic again(fresh, fleet.view());
  double lost = 0;
  for (std::uint32_t n = 0; n < 16; ++n) {
    const ResourceId cut = jobs.cut_of(FabricId(0), NodeId(n), NetworkTier::kLeaf);
    EXPECT_EQ(links.capacity(cut), fresh.capacity(cut));
    lost += 11 * kCable - links.capacity(cut).value();
  }
  EXPECT_GT(lost, 0);
}

TEST(JobTraffic, pods_have_the_cut_of_their_spines) {
  const Fleet fleet(
      fabric_of("topology: fat-tree, unit_nodes: 4, pod_nodes: 8, spine_oversubscription: 2"));
  SharedLinks links;
  JobTraffic jobs(links, fleet.view());
  const Fabric& graph = fleet.topology().fabrics()[0].graph;
  ASSERT_EQ(graph.tier_between(0, 8), NetworkTier::kCore);
  const ResourceId pod = jobs.cut_of(FabricId(0), NodeId(0), NetworkTier::kSpine);
  EXPECT_NE(jobs.cut_of(FabricId(0), NodeId(8), NetworkTier::kSpine), pod);
  EXPECT_DOUBLE_EQ(links.capacity(pod).value(), static_cast<double>(graph.cables(1)) / 2 * kCable);
  // Within a pod leaves only, across pods both.
  const StepTraffic ring = sends(ExchangePattern::kShift, 1, 1);
  EXPECT_EQ(jobs.uses_of(nodes(0, 8), ring).size(), 2U);
  EXPECT_EQ(jobs.uses_of(nodes(0, 16), ring).size(), 6U);
  EXPECT_EQ(jobs.uses_of(nodes(7, 2), ring).size(), 4U);
}

TEST(JobTraffic, a_dragonfly_group_has_the_cut_of_its_global_links) {
  const Fleet fleet(
      fabric_of("topology: dragonfly, dragonfly: {terminals: 8, routers_per_group: "
                "4, global_links_per_router: 2}"));
  SharedLinks links;
  JobTraffic jobs(links, fleet.view());
  const Fabric& graph = fleet.topology().fabrics()[0].graph;
  double groups = 0;
  for (std::uint32_t n = 0; n < 16; n += 4) {
    groups += links.capacity(jobs.cut_of(FabricId(0), NodeId(n), NetworkTier::kSpine)).value();
  }
  EXPECT_DOUBLE_EQ(groups, static_cast<double>(2 * graph.cables(1)) * kCable)
      << "each global cable leaves two groups";
  double routers = 0;
  for (std::uint32_t n = 0; n < 16; ++n) {
    routers += links.capacity(jobs.cut_of(FabricId(0), NodeId(n), NetworkTier::kLeaf)).value();
  }
  EXPECT_DOUBLE_EQ(routers, static_cast<double>(2 * (graph.cables(0) + graph.cables(1))) * kCable);
  const StepTraffic ring = sends(ExchangePattern::kShift, 1, 1);
  EXPECT_EQ(jobs.uses_of(nodes(0, 4), ring).size(), 4U) << "routers of one group";
  EXPECT_EQ(jobs.uses_of(nodes(3, 2), ring).size(), 4U) << "two routers, two groups";
}

TEST(JobTraffic, any_gang_on_a_reference_system_crosses_cuts_that_have_cables) {
  for (const char* system : {"dgx-superpod-h100", "dgx-superpod-gb200", "frontier-style"}) {
    const Result<FleetSpec> spec = generate_fleet(test_catalog(), system, 288);
    ASSERT_TRUE(spec) << spec.error().text();
    const Fleet fleet(*build_topology(*spec, test_catalog()));
    SharedLinks links;
    JobTraffic jobs(links, fleet.view());
    const std::uint32_t all = fleet.topology().node_count();
    Rng rng(2);
    for (int i = 0; i < 50; ++i) {
      const auto count = static_cast<std::uint32_t>(2 + rng.below(all - 2));
      const auto first = static_cast<std::uint32_t>(rng.below(all - count + 1));
      const StepTraffic traffic = sends(ExchangePattern::kSpread, count, 1);
      const std::vector<ResourceUse> uses = jobs.uses_of(nodes(first, count), traffic);
      double crossing = 0;
      for (std::size_t k = 0; k < uses.size(); ++k) {
        EXPECT_TRUE(k == 0 || uses[k - 1].resource < uses[k].resource);
        EXPECT_GT(links.capacity(uses[k].resource).value(), 0) << system;
        crossing += uses[k].multiplicity;
      }
      EXPECT_LE(crossing, 2.0 * count);
    }
  }
}

TEST(JobTraffic, a_planned_gang_alone_on_an_oversubscribed_tree_is_as_fast_as_it_was_priced) {
  const Fleet fleet(oversubscribed());
  static const Result<ModelCatalog> kModels = ModelCatalog::load(builtin_models(), {});
  const TrainingJob job{
      .model = &kModels->find("llama-3.1-8b")->model, .sequence = Tokens(4096), .global_batch = 64};
  const Machine machine =
      *machine_of(builtin_facts(),
                  {.accelerator = builtin_facts().find<Accelerator>("h100"), .accelerators = 64});
  const TrainingModel model = *TrainingModel::make(job, machine, builtin_constants());
  const std::vector<NodeDevices> gang = nodes(2, 8);
  const Placement placement = placement_of(gang, fleet.view());
  EXPECT_LT(placement.scale_out_quality, 1);
  for (const ParallelPlan& plan :
       {ParallelPlan{.tp = 8, .dp = 8, .zero = 1}, ParallelPlan{.dp = 64, .zero = 3},
        ParallelPlan{.tp = 4, .pp = 2, .dp = 8, .zero = 1}}) {
    const Breakdown terms = model.reprice(plan, placement);
    const StepTraffic traffic =
        training_traffic(model, plan, terms, layout_of(gang, fleet.topology()));
    SharedLinks links;
    JobTraffic jobs(links, fleet.view());
    const std::optional<FlowId> flow = jobs.start(gang, traffic);
    ASSERT_TRUE(flow);
    links.update();
    EXPECT_DOUBLE_EQ(stretched_step(traffic, links.rate(*flow)).value(), terms.total());
  }
}

TEST(JobTraffic, a_layout_counts_ranks_of_nodes_and_of_scale_up_domains) {
  const Fleet fleet(oversubscribed());
  std::vector<NodeDevices> gang = nodes(0, 3);
  gang[1].devices = 0x0f;
  const GangSplit layout = layout_of(gang, fleet.topology());
  EXPECT_EQ(layout.node_ranks, 8);
  EXPECT_EQ(layout.domain_ranks, 8);
  EXPECT_DOUBLE_EQ(layout.node_bandwidth.value(), 8 * kCable);
}

}  // namespace
}  // namespace orrery
