#include "scheduler/plans/plan_work.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>

#include "fleet/fleet.hpp"
#include "fleet/spec/builder.hpp"
#include "hardware/builtin_catalog.hpp"
#include "perf/builtin_calibration.hpp"
#include "workload/builtin_models.hpp"

namespace orrery {
namespace {

const Catalog& catalog() {
  static const Catalog kCatalog = *Catalog::load(builtin_catalog(), {});
  return kCatalog;
}

PlannerFacts facts() {
  static const Calibration kCalibration = *Calibration::load(builtin_calibration(), {});
  return {catalog(), kCalibration};
}

const Model* model(std::string_view name) {
  static const ModelCatalog kModels = *ModelCatalog::load(builtin_models(), {});
  return &(*kModels.require(name))->model;
}

/// A fleet of DGX H100 nodes, four under a leaf of an oversubscribed tree.
Topology lab(int nodes, const std::string& oversubscription = "1") {
  const Document document = *Document::parse(fmt::format(R"(apiVersion: orrery/v1
kind: Fleet
name: lab
sites:
- name: lab
  halls:
  - pods:
    - racks:
      - count: {}
        cooling: in-row-or-dense-air
        nodes: [{{type: dgx-h100, count: 4}}]
  fabrics:
  - {{type: ib-ndr, topology: fat-tree, unit_nodes: 4, leaf_oversubscription: {}}}
)",
                                                         nodes / 4, oversubscription),
                                             "lab.yaml");
  Result<Topology> topology = build_topology(*read_fleet_spec(document), catalog());
  EXPECT_TRUE(topology) << (topology ? "" : topology.error().text());
  return *std::move(topology);
}

Topology example(const std::string& name) {
  return *build_topology(
      *load_fleet_spec(std::string(ORRERY_SOURCE_DIR) + "/examples/fleets/" + name + ".yaml"),
      catalog());
}

Work training(std::string_view name, double batch = 256) {
  return {.model = model(name),
          .what = TrainingWork{.sequence = Tokens(4096), .global_batch = batch}};
}

std::vector<NodeDevices> first_nodes(std::uint32_t count, std::uint64_t mask) {
  std::vector<NodeDevices> gang;
  gang.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) gang.push_back({NodeId(i), mask});
  return gang;
}

TEST(PlanWork, TrainingPlansAreTheSearchsInUnlikeDegreesFastestFirst) {
  const Topology topology = lab(16);
  const FleetTypeId type = *topology.find_type("h100");
  const PlanEntry plans = plan_work({facts(), topology}, training("llama-3.1-8b"), {type, 64}, 4);
  ASSERT_TRUE(plans) << plans.error().text();
  ASSERT_EQ(plans->size(), 4u);
  const std::shared_ptr<const TrainingModel>& made = plans->front().training()->model;
  const Result<MachineChoice> piece = machine_with(topology, {type, 64}, {});
  const SearchResult found = search(*made, space_of(piece->machine), {.best = 1});
  EXPECT_EQ(plans->front().training()->plan, found.best.front().plan);
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>> degrees;
  double last = 0;
  for (const PlannedWork& planned : *plans) {
    const ParallelPlan& plan = planned.training()->plan;
    EXPECT_EQ(planned.devices, 64u);
    EXPECT_EQ(plan.ranks(), 64u);
    EXPECT_TRUE(degrees.insert({plan.tp, plan.cp, plan.pp, plan.ep}).second);
    EXPECT_GE(planned.step_seconds, last);
    last = planned.step_seconds;
    EXPECT_EQ(planned.training()->model, made) << "plans of an entry share their model";
  }
}

TEST(PlanWork, SaysWhetherMemoryOrTheFleetIsTooSmall) {
  const Topology topology = lab(16);
  const FleetTypeId type = *topology.find_type("h100");
  const PlanSources sources{facts(), topology};
  const PlanEntry large = plan_work(sources, training("llama-3.1-405b"), {type, 8}, 4);
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().kind, RejectionKind::kMemory);
  EXPECT_NE(large.error().reason.find("the least hungry layout"), std::string::npos);
  const PlanEntry many = plan_work(sources, training("llama-3.1-8b"), {type, 256}, 4);
  ASSERT_FALSE(many);
  EXPECT_EQ(many.error().kind, RejectionKind::kNever);
  EXPECT_EQ(many.error().reason,
            "nvidia-h100-sxm5-80g:256: the most in like nodes of one site are 128");
}

TEST(PlanWork, PlansCarryDrawPriceAndCheckpoints) {
  const Topology topology = lab(16);
  const FleetTypeId type = *topology.find_type("h100");
  const PlanEntry plans = plan_work({facts(), topology}, training("llama-3.1-8b"), {type, 64}, 1);
  ASSERT_TRUE(plans);
  const PlannedWork& planned = plans->front();
  ASSERT_TRUE(planned.power);
  EXPECT_GT(planned.power->accelerator, Watts(300));
  EXPECT_LE(planned.power->accelerator, Watts(700));
  EXPECT_GT(planned.power->rest, Watts(0));
  EXPECT_GT(planned.clock_bound, 0.3);
  EXPECT_LE(planned.clock_bound, 1);
  ASSERT_TRUE(planned.price);
  const Economics economics = *running_costs_of(facts(), *catalog().find<NodeType>("dgx-h100"), {});
  EXPECT_EQ(*planned.price, economics.price.value->hire) << "rent has its electricity";
  EXPECT_NEAR(planned.training()->checkpoint.value(), 14 * 8.03e9, 1e9);
  ASSERT_TRUE(planned.training()->reliability);
  EXPECT_GT(planned.training()->reliability->restart, Seconds(0));
}

TEST(PlanWork, AnOwnedFleetPaysForElectricity) {
  const Topology topology = lab(16);
  const FleetTypeId type = *topology.find_type("h100");
  EconomicsOptions owned;
  owned.basis = PriceBasis::kOwned;
  const PlanEntry plans =
      plan_work({facts(), topology, owned}, training("llama-3.1-8b"), {type, 64}, 1);
  ASSERT_TRUE(plans);
  const Economics economics =
      *running_costs_of(facts(), *catalog().find<NodeType>("dgx-h100"), owned);
  const DollarsPerSecond electricity = *plans->front().price - economics.price.value->hire;
  EXPECT_NEAR(electricity / (plans->front().power->total() * economics.site.value->electricity),
              topology.sites().front().pue, 1e-9);
}

TEST(Reprice, TheCanonicalPlaceCostsWhatWasPlannedAndSickLinksMore) {
  Fleet fleet(lab(16));
  const FleetTypeId type = *fleet.topology().find_type("h100");
  const PlanEntry plans =
      plan_work({facts(), fleet.topology()}, training("llama-3.1-8b"), {type, 32}, 4);
  ASSERT_TRUE(plans);
  const auto gang = first_nodes(4, 0xff);  // under one leaf
  const FabricInstance& fabric = fleet.topology().fabrics()[0];
  for (const PlannedWork& planned : *plans) {
    EXPECT_NEAR(reprice(planned, placement_of(gang, fleet.view()))->ratio, 1, 1e-12);
  }
  for (std::uint32_t port = 0; port < fabric.graph.ports_per_node(); ++port) {
    const FabricLinkId link = fabric.graph.link_of_port({.node = 1, .port = port});
    fleet.set_link(LinkId(fabric.first_link + link.value()), {.health = 0.25F, .load = 0});
  }
  EXPECT_GT(reprice(plans->front(), placement_of(gang, fleet.view()))->ratio, 1.001);
}

TEST(Reprice, CountsTheOversubscriptionOfATreeOnce) {
  const Fleet fleet(lab(16, "8"));
  const FleetTypeId type = *fleet.topology().find_type("h100");
  const PlanEntry plans =
      plan_work({facts(), fleet.topology()}, training("llama-3.1-8b", 64), {type, 64}, 1);
  ASSERT_TRUE(plans);
  const PlannedWork& planned = plans->front();
  EXPECT_NEAR(planned.training()->scale_out_quality, 0.125, 1e-9);
  const Placement whole_leaves = placement_of(first_nodes(8, 0xff), fleet.view());
  EXPECT_NEAR(whole_leaves.scale_out_quality, 0.125, 1e-9);
  Placement flat = whole_leaves;  // without the switches' latency, which the piece does not have
  flat.tier = NetworkTier::kLeaf;
  EXPECT_NEAR(reprice(planned, flat)->ratio, 1, 1e-9);
  std::vector<NodeDevices> spread;  // two nodes under each of four leaves: a fair share is more
  for (const std::uint32_t node : {0u, 1u, 4u, 5u, 8u, 9u, 12u, 13u}) {
    spread.push_back({NodeId(node), 0xff});
  }
  EXPECT_LT(reprice(planned, placement_of(spread, fleet.view()))->ratio,
            reprice(planned, whole_leaves)->ratio);
}

TEST(Reprice, AGangPlannedForOneNodeCostsMoreOverTwo) {
  const Fleet fleet(lab(16));
  const FleetTypeId type = *fleet.topology().find_type("h100");
  const PlanEntry plans =
      plan_work({facts(), fleet.topology()}, training("llama-3.1-8b"), {type, 8}, 1);
  ASSERT_TRUE(plans) << plans.error().text();
  const Placement one = placement_of(first_nodes(1, 0xff), fleet.view());
  EXPECT_NEAR(reprice(plans->front(), one)->ratio, 1, 1e-12);
  const Placement two = placement_of(first_nodes(2, 0x0f), fleet.view());
  EXPECT_GT(reprice(plans->front(), two)->ratio, 1.001);
}

TEST(Reprice, NothingRunsOverNodesThatNothingJoins) {
  const Topology topology = lab(16);
  const FleetTypeId type = *topology.find_type("h100");
  const PlanEntry plans = plan_work({facts(), topology}, training("llama-3.1-8b"), {type, 16}, 1);
  ASSERT_TRUE(plans);
  EXPECT_FALSE(reprice(plans->front(), {.domain_ranks = 8, .tier = NetworkTier::kNone}));
}

Work service(double rate, double tpot = 0.05) {
  return {.model = model("llama-3.1-8b"),
          .what = ServiceWork{.input = 1000,
                              .output = 200,
                              .rate = rate,
                              .limits = {.ttft = Seconds(2), .tpot = Seconds(tpot)}}};
}

TEST(PlanWork, ServicesMeetTheirRateAndLimits) {
  const Topology topology = lab(16);
  const FleetTypeId type = *topology.find_type("h100");
  const PlanEntry plans = plan_work({facts(), topology}, service(40), {type, 16}, 3);
  ASSERT_TRUE(plans) << plans.error().text();
  for (const PlannedWork& planned : *plans) {
    const PlannedService& s = *planned.service();
    EXPECT_LE(planned.devices, 16u);
    EXPECT_EQ(planned.devices, devices_of(s.layout) * s.layout.replicas);
    EXPECT_GE(s.requests_max, 40);
    EXPECT_LE(s.tpot, Seconds(0.05));
    EXPECT_LE(s.ttft, Seconds(2));
    EXPECT_TRUE(planned.power && planned.price);
  }
}

TEST(PlanWork, SaysWhetherAServiceLacksMemoryOrSpeed) {
  const Topology topology = lab(16);
  const FleetTypeId type = *topology.find_type("h100");
  const PlanSources sources{facts(), topology};
  Work large = service(1);
  large.model = model("llama-3.1-405b");
  const PlanEntry memory = plan_work(sources, large, {type, 8}, 1);
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.error().kind, RejectionKind::kMemory);
  const PlanEntry rate = plan_work(sources, service(1e6), {type, 8}, 1);
  ASSERT_FALSE(rate);
  EXPECT_EQ(rate.error().kind, RejectionKind::kNever);
  EXPECT_NE(rate.error().reason.find("--rate"), std::string::npos);
  const PlanEntry slow = plan_work(sources, service(1, 1e-6), {type, 8}, 1);
  ASSERT_FALSE(slow);
  EXPECT_EQ(slow.error().kind, RejectionKind::kNever);
}

TEST(CountsFor, TrainingGetsTheSizesThatHaveAPlan) {
  const Topology topology = lab(16);
  const FleetTypeId type = *topology.find_type("h100");
  const PlanSources sources{facts(), topology};
  const Work work = training("llama-3.1-70b");
  const std::vector<std::uint32_t> counts = counts_for(sources, work, type, {1, 1000});
  EXPECT_EQ(counts, (std::vector<std::uint32_t>{16, 32, 64, 128}));
  EXPECT_FALSE(plan_work(sources, work, {type, 8}, 1));
  for (const std::uint32_t count : counts) {
    EXPECT_TRUE(plan_work(sources, work, {type, count}, 1)) << count;
  }
}

TEST(CountsFor, KeepToTheRangeAndCountScaleUpDomains) {
  const Topology topology = example("gb200-nvl72-8racks");
  const FleetTypeId type(0);
  const std::vector<std::uint32_t> counts =
      counts_for({facts(), topology}, training("llama-3.1-8b", 288), type, {8, 288});
  for (const std::uint32_t count : {8u, 64u, 72u, 144u, 288u}) {
    EXPECT_NE(std::find(counts.begin(), counts.end(), count), counts.end()) << count;
  }
  EXPECT_EQ(counts.front(), 8u);
  EXPECT_EQ(counts.back(), 288u);
}

TEST(CountsFor, AServiceGetsWhatItsRateTakes) {
  const Topology topology = lab(16);
  const FleetTypeId type = *topology.find_type("h100");
  const PlanSources sources{facts(), topology};
  const std::vector<std::uint32_t> counts = counts_for(sources, service(40), type, {1, 64});
  ASSERT_FALSE(counts.empty());
  for (const std::uint32_t count : counts) {
    EXPECT_TRUE(plan_work(sources, service(40), {type, count}, 1)) << count;
  }
  const std::vector<std::uint32_t> more = counts_for(sources, service(400), type, {1, 128});
  ASSERT_FALSE(more.empty());
  EXPECT_GT(more.front(), counts.front());
}

}  // namespace
}  // namespace orrery
