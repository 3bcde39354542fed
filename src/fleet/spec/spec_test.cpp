#include "fleet/spec/spec.hpp"

#include <gtest/gtest.h>

#include "fleet/fleet_test.hpp"

namespace orrery {
namespace {

std::string error_of(const std::string& yaml) {
  Result<FleetSpec> spec = spec_of(yaml);
  return spec ? "accepted" : spec.error().text();
}

constexpr const char* kRack = "    - racks: [{nodes: [{type: dgx-h100}]}]\n";

TEST(FleetSpec, ReadsUnitsAndDefaults) {
  Result<FleetSpec> spec =
      spec_of(one_hall(kRack, "  power_cap: 2 MW\n  electricity: $0.08/kWh\n"));
  ASSERT_TRUE(spec) << spec.error().text();
  const SiteSpec& site = spec->sites.front();
  EXPECT_EQ(site.power_cap, Watts(2e6));
  EXPECT_DOUBLE_EQ(site.electricity->value(), 0.08 / 3.6e6);
  EXPECT_EQ(site.halls[0].pods[0].name, "pod");
  EXPECT_EQ(site.halls[0].pods[0].racks[0].nodes[0].count, 1);
}

TEST(FleetFile, IsAFleetAndDocumentsWithFacts) {
  const std::string fleet = one_hall(kRack);
  const auto plain = read_fleet_file(fleet, "f.yaml");
  ASSERT_TRUE(plain) << plain.error().text();
  EXPECT_TRUE(plain->facts.empty());
  const auto priced = read_fleet_file(fleet + "---\nkind: Catalog\n", "f.yaml");
  ASSERT_TRUE(priced) << priced.error().text();
  EXPECT_EQ(write_fleet_spec(priced->spec), write_fleet_spec(plain->spec));
  EXPECT_EQ(priced->facts.catalogs.size(), 1u);
  const auto two = read_fleet_file(fleet + "---\n" + fleet, "f.yaml");
  ASSERT_FALSE(two);
  EXPECT_NE(two.error().text().find("expected a document of kind Catalog or Calibration"),
            std::string::npos);
  const auto reversed = read_fleet_file("kind: Catalog\n---\n" + fleet, "f.yaml");
  ASSERT_FALSE(reversed);
  EXPECT_EQ(reversed.error().text(), "f.yaml:1:7: expected kind Fleet, found \"Catalog\"");
}

TEST(FleetSpec, NamesTheNearestKnownKeyOfAnUnknownOne) {
  const std::string text = error_of(one_hall(kRack, "  power_capp: 2 MW\n"));
  EXPECT_TRUE(
      text.starts_with("fleet.yaml:6:3: unknown key \"power_capp\", did you mean "
                       "\"power_cap\"?"))
      << text;
}

TEST(FleetSpec, RefusesQuantitiesWithoutAUnitWithTheWrongOneOrAbsurdOnes) {
  EXPECT_TRUE(error_of(one_hall(kRack, "  power_cap: 2\n"))
                  .starts_with("fleet.yaml:6:14: \"2\" has no unit"));
  EXPECT_TRUE(error_of(one_hall(kRack, "  power_cap: 2 GB\n"))
                  .starts_with("fleet.yaml:6:14: \"2 GB\" has the unknown unit \"GB\""));
  EXPECT_TRUE(error_of(one_hall(kRack, "  power_cap: -2 MW\n")).find("is negative") !=
              std::string::npos);
  EXPECT_TRUE(error_of(one_hall(kRack, "  power_cap: 2e30 MW\n")).find("more than any power") !=
              std::string::npos);
}

TEST(FleetSpec, RefusesCountsOutOfRangeDuplicateNamesAndEmptyParts) {
  EXPECT_EQ(error_of(one_hall("    - racks: [{nodes: [{type: x}]}]\n      count: -1\n")),
            "fleet.yaml:10:14: -1 is out of range, expected 0 to 1048576");
  EXPECT_EQ(
      error_of(one_hall("    - racks: [{nodes: [{type: x, names: \"n[1-\"}]}]\n")).substr(0, 17),
      "fleet.yaml:9:41: ");
  EXPECT_NE(error_of(one_hall(std::string(kRack) + kRack)).find("a second group of pods"),
            std::string::npos);
  EXPECT_NE(error_of(one_hall("    - racks: []\n")).find("no racks"), std::string::npos);
  EXPECT_NE(error_of(one_hall("    - name: a/b\n      racks: [{nodes: [{type: x}]}]\n"))
                .find("is not a name"),
            std::string::npos);
}

TEST(FleetSpec, RefusesARedundancyThatLeavesNothing) {
  const std::string text =
      error_of(one_hall(kRack, "  feeds: [{name: a, capacity: 1 MW, units: 1, redundancy: 2N}]\n"));
  EXPECT_NE(text.find("leaves nothing to use"), std::string::npos) << text;
}

TEST(FleetSpec, RedundantSuppliesKeepTheirSpare) {
  const auto usable = [](int units, Redundancy redundancy) {
    return RedundantSupply{"x", Watts(100), units, redundancy, {}}.usable();
  };
  EXPECT_EQ(usable(4, Redundancy::kN), Watts(400));
  EXPECT_EQ(usable(4, Redundancy::kN1), Watts(300));
  EXPECT_EQ(usable(4, Redundancy::k2N), Watts(200));
  EXPECT_EQ(usable(5, Redundancy::k2N), Watts(200));
}

TEST(FleetSpec, RefusesWanLinksToUnknownSites) {
  const std::string wan = "wan: [{from: east, to: west, bandwidth: 100 Gb/s, latency: 30 ms}]\n";
  EXPECT_NE(error_of(one_hall(kRack) + wan).find("no site \"west\""), std::string::npos);
}

TEST(FleetSpec, WhatIsWrittenReadsBackTheSame) {
  const std::string yaml = one_hall(
      "    - name: su\n      count: 3\n      torus: {shape: [4, 4, 8], cube: [4, 4, 4], twisted: "
      "true}\n      racks:\n      - count: 2\n        power_limit: 41.25 kW\n        cooling: "
      "in-row-or-dense-air\n        nodes: [{type: dgx-h100, count: 4, names: \"n[01-24]\", "
      "max_power: 10.123456 kW}]\n",
      "  region: Germany\n  pue: 1.25\n  electricity: $0.19/kWh\n  feeds: [{name: a, capacity: 3 "
      "MW, units: 2, redundancy: N+1}]\n  fabrics: [{type: ib-ndr, topology: fat-tree, "
      "spine_oversubscription: 1.75}]\n  storage: [{name: s, system: ddn-ai400x2-lustre, units: "
      "8}]\n");
  Result<FleetSpec> first = spec_of(yaml);
  ASSERT_TRUE(first) << first.error().text();
  const std::string written = write_fleet_spec(*first);
  Result<FleetSpec> second = spec_of(written);
  ASSERT_TRUE(second) << second.error().text() << "\n" << written;
  EXPECT_EQ(write_fleet_spec(*second), written);
  EXPECT_EQ(second->sites[0].halls[0].pods[0].racks[0].nodes[0].max_power, Watts(10123.456));
  EXPECT_EQ(second->sites[0].halls[0].pods[0].torus->shape, (std::vector<int>{4, 4, 8}));
  EXPECT_DOUBLE_EQ(second->sites[0].electricity->value(), first->sites[0].electricity->value());
}

TEST(FleetSpec, OwnershipIsWrittenAndReadBack) {
  const std::string rack = "    - racks:\n      - nodes: [{type: dgx-h100, ownership: rented}]\n";
  const Result<FleetSpec> first = spec_of(one_hall(rack, "  ownership: owned\n"));
  ASSERT_TRUE(first) << first.error().text();
  const Result<FleetSpec> second = spec_of(write_fleet_spec(*first));
  ASSERT_TRUE(second) << second.error().text();
  EXPECT_EQ(second->sites[0].ownership, NodeOwnership::kOwned);
  EXPECT_EQ(second->sites[0].halls[0].pods[0].racks[0].nodes[0].ownership, NodeOwnership::kRented);
  const std::string wrong = error_of(one_hall(rack, "  ownership: leased\n"));
  EXPECT_NE(wrong.find("leased"), std::string::npos) << wrong;
  EXPECT_NE(wrong.find("owned"), std::string::npos) << wrong;
}

TEST(FleetSpec, WritesNumbersThatAreNotTheDefaultAndOptionalsThatAreThere) {
  const std::string yaml =
      one_hall("    - racks:\n      - nodes: [{type: dgx-h100}]\n",
               "  pue: 1\n  fabrics: [{type: ib-ndr, topology: fat-tree, planes: 0, unit_nodes: 1, "
               "in_network_reduction: false}]\n");
  Result<FleetSpec> first = spec_of(yaml);
  ASSERT_TRUE(first) << first.error().text();
  Result<FleetSpec> second = spec_of(write_fleet_spec(*first));
  ASSERT_TRUE(second) << second.error().text();
  EXPECT_EQ(second->sites[0].pue, 1);
  EXPECT_EQ(second->sites[0].fabrics[0].planes, 0);
  EXPECT_EQ(second->sites[0].fabrics[0].unit_nodes, 1);
  EXPECT_EQ(second->sites[0].fabrics[0].in_network_reduction, false);
}

TEST(FleetSpec, WritesTextThatYamlWouldTakeForSomethingElse) {
  using namespace std::string_literals;
  for (const std::string& text :
       {"Null"s, "null"s, "12 MW"s, "a: b"s, "\x7F"s, "\x01\0"s, "\xC2\x85"s, "\xE2\x80\xA8x"s,
        "\xEF\xBB\xBF"s, "\xEF\xBF\xBF"s, "\"quoted\" \\"s, "line\nline"s, "東京 😀"s}) {
    Result<FleetSpec> first = spec_of(one_hall(kRack));
    ASSERT_TRUE(first);
    first->sites[0].region = text;
    Result<FleetSpec> second = spec_of(write_fleet_spec(*first));
    ASSERT_TRUE(second) << second.error().text() << write_fleet_spec(*first);
    EXPECT_EQ(second->sites[0].region, text);
  }
}

TEST(FleetSpec, WritesTheSameTextAgainWhateverTheNumber) {
  for (const char* price : {"$0.0812345678901/kWh", "$0.07/kWh", "$123.456789/MWh", "$1e-7/kWh"}) {
    Result<FleetSpec> first =
        spec_of(one_hall(kRack, "  electricity: " + std::string(price) + "\n"));
    ASSERT_TRUE(first) << first.error().text();
    const std::string written = write_fleet_spec(*first);
    Result<FleetSpec> second = spec_of(written);
    ASSERT_TRUE(second) << second.error().text();
    EXPECT_EQ(write_fleet_spec(*second), written);
  }
}

}  // namespace
}  // namespace orrery
