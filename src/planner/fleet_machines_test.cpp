#include "planner/fleet_machines.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "fleet/spec/builder.hpp"
#include "hardware/builtin_catalog.hpp"

namespace orrery {
namespace {

const Catalog& catalog() {
  static const Catalog loaded = *Catalog::load(builtin_catalog(), {});
  return loaded;
}

Topology fleet(const std::string& text) {
  const Document document = *Document::parse(text, "fleet.yaml");
  const FleetSpec spec = *read_fleet_spec(document);
  return *build_topology(spec, catalog());
}

Topology example(const std::string& name) {
  const FleetSpec spec =
      *load_fleet_spec(std::string(ORRERY_SOURCE_DIR) + "/examples/fleets/" + name);
  return *build_topology(spec, catalog());
}

std::string small_fleet(const std::string& oversubscription) {
  return R"(apiVersion: orrery/v1
kind: Fleet
name: lab
sites:
- name: lab
  region: Norway
  pue: 1.1
  price_factor: 0.5
  halls:
  - pods:
    - racks:
      - count: 6
        nodes:
        - type: dgx-h100
          count: 2
  fabrics:
  - type: ib-ndr
    topology: fat-tree
    unit_nodes: 4
    leaf_oversubscription: )" +
         oversubscription + "\n";
}

std::vector<std::uint64_t> counts(const FleetMachines& machines) {
  std::vector<std::uint64_t> list;
  for (const MachineChoice& choice : machines.choices) list.push_back(choice.machine.ranks);
  return list;
}

TEST(FleetMachines, AreWholeNodesPowersOfTwoAndAll) {
  const Topology topology = fleet(small_fleet("1"));
  const FleetMachines machines = machines_of(topology, {});
  EXPECT_EQ(counts(machines), (std::vector<std::uint64_t>{8, 16, 32, 64, 96}));
  EXPECT_NE(machines.choices[1].label.find("under one leaf"), std::string::npos);
  EXPECT_TRUE(machines.skipped.empty());
}

TEST(FleetMachines, HaveTheFiguresOfTheirSite) {
  const Topology topology = fleet(small_fleet("1"));
  const FleetMachines machines = machines_of(topology, {});
  const EconomicsOptions& economics = machines.choices.front().economics;
  EXPECT_EQ(economics.price_factor, 0.5);
  EXPECT_EQ(*economics.site.pue, 1.1);
  EXPECT_EQ(*economics.site.region, "Norway");
  EconomicsOptions stated;
  stated.site.pue = 1.5;
  EXPECT_EQ(*machines_of(topology, stated).choices.front().economics.site.pue, 1.5);
}

TEST(FleetMachines, AnOversubscribedTreeIsSlowerAboveItsLeaves) {
  const Topology topology = fleet(small_fleet("2"));
  const FleetMachines machines = machines_of(topology, {});
  const auto of = [&](std::uint64_t ranks) -> const Machine& {
    return std::find_if(machines.choices.begin(), machines.choices.end(),
                        [&](const auto& choice) { return choice.machine.ranks == ranks; })
        ->machine;
  };
  EXPECT_EQ(of(32).tiers.back().quality, 1);
  const Machine& all = of(96);
  ASSERT_EQ(all.tiers.size(), 3u);
  EXPECT_EQ(all.tiers[1].size, 32u);
  EXPECT_EQ(all.tiers[1].quality, 1);
  EXPECT_NEAR(all.tiers[2].quality, 0.5, 1e-9);
}

TEST(FleetMachines, CountWholeScaleUpDomainsToo) {
  const Topology topology = example("gb200-nvl72-8racks.yaml");
  const std::vector<std::uint64_t> sizes = counts(machines_of(topology, {}));
  for (const std::uint64_t size : {4u, 64u, 72u, 144u, 288u, 576u}) {
    EXPECT_NE(std::find(sizes.begin(), sizes.end(), size), sizes.end()) << size;
  }
}

TEST(FleetMachines, APieceTakesEqualPartsOfAsFewNodesAsCanBe) {
  const Topology topology = fleet(small_fleet("2"));
  const FleetTypeId type = *topology.find_type("h100");
  const auto piece = [&](std::uint64_t accelerators) {
    Result<MachineChoice> choice = machine_with(topology, {type, accelerators}, {});
    EXPECT_TRUE(choice) << (choice ? "" : choice.error().text());
    return choice ? choice->machine : Machine{};
  };
  EXPECT_EQ(piece(4).tiers.front().size, 4u);
  EXPECT_EQ(piece(12).tiers.front().size, 6u) << "two nodes of six";
  EXPECT_EQ(piece(12).ranks, 12u);
  EXPECT_EQ(piece(11).tiers.front().link, LinkClass::kInfiniband)
      << "eleven nodes of one, beside no link";
  EXPECT_NEAR(piece(96).tiers.back().quality, 0.5, 1e-9);
  EXPECT_EQ(piece(16).tiers.back().bandwidth, piece(12).tiers.back().bandwidth)
      << "an accelerator has its own part of the node's NICs";
}

TEST(FleetMachines, APieceOfOneNodeKnowsTheNetworkItDoesNotNeed) {
  const Topology topology = fleet(small_fleet("1"));
  const Result<MachineChoice> one = machine_with(topology, {*topology.find_type("h100"), 8}, {});
  ASSERT_TRUE(one);
  ASSERT_EQ(one->machine.tiers.size(), 2u);
  EXPECT_EQ(one->machine.tiers[0].link, LinkClass::kSwitched);
  EXPECT_TRUE(one->machine.tiers[0].in_network_reduction);
  EXPECT_EQ(one->machine.tiers[1].link, LinkClass::kInfiniband);
}

TEST(FleetMachines, APieceIsOfTheLargestPoolOfItsType) {
  const Topology topology = example("two-regions.yaml");
  const FleetTypeId type = *topology.find_type("h100");
  const Result<MachineChoice> small = machine_with(topology, {type, 64}, {});
  ASSERT_TRUE(small);
  EXPECT_NE(small->label.find("at ashburn"), std::string::npos) << small->label;
  const Result<MachineChoice> both = machine_with(topology, {type, 768}, {});
  ASSERT_FALSE(both);
  EXPECT_EQ(both.error().kind, ErrorKind::kInfeasible);
  EXPECT_NE(both.error().message.find("are 512"), std::string::npos) << both.error().message;
}

TEST(FleetMachines, TiersGrowStrictlyInEveryExample) {
  for (const char* name : {"gb200-nvl72-8racks.yaml", "inferentia2-farm.yaml", "laptop.yaml",
                           "meta-24k-h100.yaml", "mi300x-512.yaml", "scarce-mixed.yaml",
                           "tpu-v5p-pod.yaml", "trn2-ultraservers.yaml", "two-regions.yaml"}) {
    const Topology topology = example(name);
    const FleetMachines machines = machines_of(topology, {});
    ASSERT_FALSE(machines.choices.empty()) << name;
    for (const MachineChoice& choice : machines.choices) {
      std::uint64_t below = 0;
      for (const Tier& tier : choice.machine.tiers) {
        EXPECT_GT(tier.size, below) << name << ": " << choice.label;
        below = tier.size;
      }
      EXPECT_GE(below, choice.machine.ranks) << name << ": " << choice.label;
      EXPECT_LE(choice.machine.tiers.size(), kTiersMax);
    }
  }
}

TEST(FleetMachines, APoolIsJoinedByItsFabric) {
  const Topology topology = example("superpod-h100.yaml");
  const std::vector<FleetPool> pools = fleet_pools(topology, {});
  ASSERT_FALSE(pools.empty());
  ASSERT_TRUE(pools[0].joined);
  EXPECT_EQ(pools[0].joined->ranks, pools[0].accelerators);
  EXPECT_EQ(pools[0].joined->tiers.front().size, pools[0].domain);
}

}  // namespace
}  // namespace orrery
