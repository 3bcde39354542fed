#include "fleet/spec/builder.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "base/format/field_writer.hpp"
#include "fleet/fleet_test.hpp"
#include "fleet/spec/generate.hpp"
#include "fleet/spec/named_places.hpp"
#include "fleet/spec/summary.hpp"

namespace orrery {
namespace {

std::string rack(const std::string& keys, const std::string& nodes) {
  return one_hall("    - racks: [{" + keys + (keys.empty() ? "" : ", ") + "nodes: [" + nodes +
                  "]}]\n");
}

TEST(TopologyBuilder, NumbersDomainsLevelByLevelAndNodesDepthFirst) {
  const Topology topology = built(small_h100());
  ASSERT_EQ(topology.domains().size(), 1u + 1 + 1 + 2 + 4);
  EXPECT_EQ(topology.node_count(), 16u);
  EXPECT_EQ(topology.device_count(), 128u);
  EXPECT_EQ(topology.path(DomainId(0)), "test");
  EXPECT_EQ(topology.path(DomainId(8)), "east/hall/su-2/rack-2");
  EXPECT_EQ(topology.node_name(NodeId(15)), "east/hall/su-2/rack-2/n4");
  EXPECT_EQ(topology.domain(DomainId(8)).first_node, NodeId(12));
  EXPECT_EQ(topology.ancestor(DomainId(8), Level::kPod), DomainId(4));
}

TEST(TopologyBuilder, EveryDomainIsTheUnionOfItsChildren) {
  const Topology topology = built(small_h100());
  for (const Domain& domain : topology.domains()) {
    std::uint32_t nodes = 0;
    for (std::uint32_t i = 0; i < domain.children; ++i) {
      const Domain& child = topology.domain(DomainId(domain.first_child.value() + i));
      EXPECT_EQ(child.first_node.value(), domain.first_node.value() + nodes);
      EXPECT_EQ(&topology.domain(child.parent), &domain);
      nodes += child.nodes;
    }
    if (domain.children > 0) {
      EXPECT_EQ(nodes, domain.nodes);
    }
  }
  for (std::uint32_t d = 0; d < topology.device_count(); ++d) {
    const NodeId node = topology.node_of(DeviceId(d));
    EXPECT_GE(d, topology.place(node).first_device.value());
    EXPECT_LT(d, topology.place(node).first_device.value() + topology.group(node).devices);
  }
}

TEST(TopologyBuilder, ARackOverItsCoolingLimitNamesRackLoadAndLimit) {
  EXPECT_EQ(refusal(rack("cooling: air-containment-modern", "{type: dgx-h100, count: 4}")),
            "fleet.yaml:9:15: rack hall/pod/rack draws up to 40.8 kW, more than the limit of its "
            "cooling class air-containment-modern of 30 kW; the least that would hold it is "
            "in-row-or-dense-air (60 kW)");
}

TEST(TopologyBuilder, ARackWhoseIdleNodesExceedItsPowerLimitIsRefusedWithWhatWouldDo) {
  const auto limited = [](const std::string& limit) {
    return rack("cooling: in-row-or-dense-air, power_limit: " + limit,
                "{type: dgx-h100, count: 4}");
  };
  EXPECT_EQ(refusal(limited("7.9 kW")),
            "fleet.yaml:9:15: east/hall/pod/rack (rack) carries 8 kW while nothing runs, more than "
            "its 7.9 kW; expected at least that, and 31 kW for all of it to train at full clocks");
  EXPECT_EQ(built(limited("8 kW")).power_domains().back().limit, Watts(8e3));
}

TEST(TopologyBuilder, AsksForAPowerNobodyPublished) {
  // The catalog gives every such node an assumed range; without one the spec must state the power.
  Result<Document> overlay = Document::parse(
      "apiVersion: orrery/v1\nkind: Catalog\nname: x\nnodes:\n- {id: secret, like: "
      "tpu-v5p-host, assumed_watts: null}\n",
      "x.yaml");
  ASSERT_TRUE(overlay);
  std::vector<EmbeddedFile> files(builtin_catalog().begin(), builtin_catalog().end());
  files.push_back({"x.yaml",
                   "apiVersion: orrery/v1\nkind: Catalog\nname: x\nnodes:\n- {id: secret, like: "
                   "tpu-v5p-host, assumed_watts: null}\n"});
  Result<Catalog> catalog = Catalog::load(files, {});
  ASSERT_TRUE(catalog) << catalog.error().text();
  const auto build = [&](const std::string& extra) {
    Result<FleetSpec> spec = spec_of(one_hall(
        "    - torus: {shape: [2, 2]}\n      racks: [{nodes: [{type: secret" + extra + "}]}]\n"));
    return build_topology(*spec, *catalog);
  };
  Result<Topology> asked = build("");
  ASSERT_FALSE(asked);
  EXPECT_NE(asked.error().text().find("the power of \"secret\" is not published; give max_power"),
            std::string::npos)
      << asked.error().text();
  EXPECT_TRUE(build(", max_power: 2 kW"));
}

TEST(TopologyBuilder, ShowsWhatPowerIsAssumed) {
  const Topology topology = built(one_hall(
      "    - torus: {shape: [4, 4, 4]}\n      racks: [{nodes: [{type: tpu-v5p-host, count: "
      "16}]}]\n"));
  EXPECT_TRUE(topology.groups()[0].power_assumed);
  const NodeType& type = topology.node_type(topology.groups()[0]);
  EXPECT_EQ(topology.groups()[0].max_power, type.assumed_power->high);
  EXPECT_FALSE(built(small_h100()).groups()[0].power_assumed);
}

TEST(TopologyBuilder, ADomainMayCarryLessThanItsTrainingLoadButNotLessThanWithoutWork) {
  const auto capped = [](const std::string& cap) {
    return one_hall("    - racks: [{nodes: [{type: dgx-h100, count: 2}]}]\n",
                    "  pue: 1.25\n  power_cap: " + cap + "\n");
  };
  const Topology topology = built(capped("10 kW"));
  const FleetSummary summary = summarize(topology);
  ASSERT_EQ(summary.power.oversubscribed_in_training.size(), 1u);
  EXPECT_EQ(summary.power.oversubscribed_in_training[0].domain, "east/power-cap");
  EXPECT_EQ(summary.power.oversubscribed_in_training[0].load, Watts(19'375));
  EXPECT_EQ(summary.power.oversubscribed_in_training[0].limit, Watts(10e3));
  const std::string text = refusal(capped("4.9 kW"));
  EXPECT_NE(text.find("east/power-cap (site-cap) carries 5 kW while nothing runs, more than its "
                      "4.9 kW; expected at least that, and 19.38 kW"),
            std::string::npos)
      << text;
  EXPECT_TRUE(summarize(built(capped("20 kW"))).power.oversubscribed_in_training.empty());
}

TEST(TopologyBuilder, RefusesUnknownReferencesWithTheNearestName) {
  EXPECT_NE(refusal(rack("", "{type: dgx-h10}")).find("fleet.yaml:9:"), std::string::npos);
  EXPECT_NE(refusal(rack("", "{type: dgx-h10}")).find("dgx-h100"), std::string::npos);
  EXPECT_NE(refusal(rack("cooling: ice", "{type: dgx-h100}")).find("\"ice\" is not in the catalog"),
            std::string::npos);
  EXPECT_NE(refusal(rack("loop: north", "{type: dgx-h100}")).find("no cooling loop \"north\""),
            std::string::npos);
  const std::string pods = "    - racks: [{nodes: [{type: dgx-h100}]}]\n";
  EXPECT_NE(refusal(one_hall(pods, "  region: Atlantis\n")).find("Atlantis"), std::string::npos);
  EXPECT_NE(refusal(one_hall(pods, "  storage: [{name: s, system: floppy}]\n")).find("floppy"),
            std::string::npos);
  EXPECT_NE(refusal(one_hall(pods, "  fabrics: [{type: token-ring, topology: fat-tree}]\n"))
                .find("token-ring"),
            std::string::npos);
}

TEST(TopologyBuilder, RefusesMoreNodesThanAFleetMayHaveBeforeBuildingThem) {
  const std::string text = refusal(
      one_hall("    - count: 1000000\n      racks: [{count: 1000, nodes: [{type: dgx-h100}]}]\n"));
  EXPECT_NE(text.find("more than 1,048,576 nodes in all"), std::string::npos) << text;
}

// What is not there changes nothing but the numbers of types.
TEST(TopologyBuilder, APlaceWithCountZeroHasNoDomainAndKeepsItsType) {
  const std::string used = "    - racks: [{name: r, nodes: [{type: dgx-h100, count: 2}]}]\n";
  const std::string fabric =
      "  fabrics:\n  - {name: old, type: ib-ndr, topology: fat-tree, node_types: [dgx-b200]}\n";
  for (const char* gone :
       {"    - {name: gone, count: 0, racks: [{nodes: [{type: dgx-b200}]}]}\n",
        "    - {name: gone, racks: [{count: 0, nodes: [{type: dgx-b200}]}]}\n",
        "    - {name: gone, racks: [{nodes: [{type: dgx-b200, count: 0}]}]}\n",
        "    - {name: gone, torus: {shape: [4, 4]}, racks: [{nodes: [{type: dgx-b200, count: "
        "0}]}]}\n"}) {
    const Topology topology = built(one_hall(fmt::format("{}{}", gone, used)).append(fabric));
    EXPECT_EQ(topology.domains().size(), 5u) << gone;
    EXPECT_EQ(topology.node_count(), 2u);
    EXPECT_EQ(topology.type_count(), 2u);
    EXPECT_EQ(topology.device_count(Topology::root(), FleetTypeId(0)), 0u);
    EXPECT_EQ(topology.power_domains().size(), 1u);
    EXPECT_TRUE(topology.fabrics().empty());
  }
  const std::string empty =
      "- name: empty\n  halls: [{pods: [{racks: [{nodes: [{type: dgx-h100, count: 0}]}]}]}]\n";
  const auto none = nodes_named(built(one_hall(used).append(empty)), "empty", {});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "empty has no nodes");
  EXPECT_TRUE(refusal(one_hall("    - racks: [{nodes: [{type: dgx-h100, count: 0}]}]\n"))
                  .ends_with("the fleet has no nodes"));
  EXPECT_TRUE(refusal(one_hall(used + "    - {name: b, racks: [{nodes: [{type: dgx-h100, count: 0, "
                                      "names: n1}]}]}\n"))
                  .ends_with("names has 1 name for 0 nodes"));
}

TEST(TopologyBuilder, AScaleUpDomainIsTheNodeTheRackOrThePod) {
  const Topology h100 = built(small_h100());
  EXPECT_EQ(h100.place(NodeId(5)).scale_up_first, NodeId(5));
  EXPECT_EQ(h100.group(NodeId(5)).scale_up_devices, 8u);

  const Topology nvl72 = built(one_hall(
      "    - racks: [{count: 2, cooling: direct-liquid-hybrid, nodes: [{type: gb200-nvl72-tray, "
      "count: 18}]}]\n"));
  EXPECT_EQ(nvl72.place(NodeId(20)).scale_up_first, NodeId(18));
  EXPECT_EQ(nvl72.group(NodeId(20)).scale_up_devices, 72u);
  EXPECT_EQ(nvl72.group(NodeId(20)).scale_up_nodes, 18u);

  const Topology tpu = built(one_hall(
      "    - torus: {shape: [4, 4, 8], cube: [4, 4, 4]}\n      racks: [{count: 2, nodes: [{type: "
      "tpu-v5p-host, count: 16}]}]\n"));
  EXPECT_EQ(tpu.place(NodeId(31)).scale_up_first, NodeId(0));
  EXPECT_EQ(tpu.group(NodeId(31)).scale_up_devices, 128u);
}

TEST(TopologyBuilder, RefusesScaleUpDomainsThatDoNotFit) {
  EXPECT_NE(refusal(rack("cooling: direct-liquid-full", "{type: gb200-nvl72-tray, count: 20}"))
                .find("80 accelerators (the rack), but nvidia-gb200-186g joins at most 72"),
            std::string::npos);
  EXPECT_NE(refusal(one_hall("    - torus: {shape: [4, 4, 4]}\n      racks: [{nodes: [{type: "
                             "tpu-v5p-host, count: 15}]}]\n"))
                .find("the torus has 64 accelerators, the pod has 60"),
            std::string::npos);
}

TEST(TopologyBuilder, NamesNodesAsTheSpecDoes) {
  const Topology topology =
      built(one_hall("    - racks: [{count: 2, nodes: [{type: dgx-h100, count: 2, names: "
                     "\"gpu[08-11]\"}]}]\n"));
  EXPECT_EQ(topology.node_name(NodeId(0)), "gpu08");
  EXPECT_EQ(topology.node_name(NodeId(3)), "gpu11");
  EXPECT_NE(refusal(rack("", "{type: dgx-h100, count: 2, names: \"gpu[1-3]\"}"))
                .find("names has 3 names for 2 nodes"),
            std::string::npos);
  EXPECT_NE(refusal(one_hall("    - racks: [{nodes: [{type: dgx-h100, count: 2, names: "
                             "\"a[1-2]\"}, {type: l4-4, names: a2}]}]\n"))
                .find("a second node named \"a2\""),
            std::string::npos);
}

TEST(TopologyBuilder, PowerAddsUpAlongTheElectricPathAndTheLoop) {
  const Topology topology = built(
      "apiVersion: orrery/v1\nkind: Fleet\nname: f\nsites:\n- name: s\n  pue: 1.5\n  power_cap: 1 "
      "MW\n  feeds: [{name: a, capacity: 2 MW, units: 2, redundancy: 2N}]\n  halls:\n  - name: "
      "h\n    ups: {name: u, capacity: 500 kW}\n    rows: {racks: 2, capacity: 120 kW}\n    "
      "cooling_loops: [{name: water, capacity: 200 kW, units: 2, redundancy: N+1}]\n    pods:\n    "
      "- racks: [{count: 3, cooling: in-row-or-dense-air, nodes: [{type: dgx-h100, count: 4}]}]\n");
  const auto find = [&](PowerKind kind, std::size_t which) -> const PowerDomain& {
    for (const PowerDomain& domain : topology.power_domains()) {
      if (domain.kind == kind && which-- == 0) return domain;
    }
    return topology.power_domains().front();
  };
  EXPECT_EQ(find(PowerKind::kRow, 0).max_power, Watts(2 * 40800));
  EXPECT_EQ(find(PowerKind::kRow, 1).max_power, Watts(40800));
  EXPECT_EQ(find(PowerKind::kUps, 0).max_power, Watts(3 * 40800));
  EXPECT_EQ(find(PowerKind::kCoolingLoop, 0).max_power, Watts(3 * 40800));
  EXPECT_EQ(find(PowerKind::kFeeds, 0).max_power, Watts(3 * 40800 * 1.5));
  EXPECT_EQ(find(PowerKind::kSiteCap, 0).limit, Watts(1e6));
  const PowerDomainId rack_power = topology.power_of(DomainId(6));
  EXPECT_EQ(topology.power_name(topology.power(rack_power).parent), "s/h/row-2");
}

TEST(TopologyBuilder, BuildsEveryReferenceSystemOfTheCatalog) {
  std::set<std::string> built_systems;
  for (const SystemType& system : test_catalog().all<SystemType>()) {
    Result<FleetSpec> spec = generate_fleet(test_catalog(), system.id, std::nullopt);
    ASSERT_TRUE(spec) << system.id << ": " << spec.error().text();
    Result<Topology> topology = build_topology(*spec, test_catalog());
    ASSERT_TRUE(topology) << system.id << ": " << topology.error().text();
    if (system.accelerators) {
      EXPECT_EQ(topology->device_count(), static_cast<std::uint32_t>(*system.accelerators));
    }
    built_systems.insert(system.id);
  }
  EXPECT_GE(built_systems.size(), 20u);
}

TEST(TopologyBuilder, FabricsOfUnlikeNicsMustBeApart) {
  const std::string pods =
      "    - racks: [{nodes: [{type: dgx-h100}]}, {name: old, nodes: [{type: dgx-a100-80g}]}]\n";
  EXPECT_NE(refusal(one_hall(pods, "  fabrics: [{type: ib-ndr, topology: fat-tree}]\n"))
                .find("unlike NICs"),
            std::string::npos);
  const Topology apart = built(one_hall(
      pods,
      "  fabrics: [{name: new, type: ib-ndr, topology: fat-tree, node_types: [dgx-h100]}, {name: "
      "old, type: ib-hdr, topology: fat-tree, node_types: [dgx-a100-80g]}]\n"));
  ASSERT_EQ(apart.fabrics().size(), 2u);
  EXPECT_EQ(apart.fabrics()[1].nodes, std::vector<NodeId>{NodeId(1)});
  EXPECT_EQ(apart.fabrics()[1].first_link, apart.fabrics()[0].graph.link_count());
}

}  // namespace
}  // namespace orrery
