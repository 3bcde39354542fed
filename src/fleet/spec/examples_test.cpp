// Checks that every fleet under examples/fleets builds, with the totals that its comments state.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "fleet/fleet_test.hpp"
#include "fleet/spec/summary.hpp"
#include "fleet/svg/svg.hpp"

namespace orrery {
namespace {

std::string path_of(const std::string& name) {
  return std::string(ORRERY_SOURCE_DIR) + "/examples/fleets/" + name + ".yaml";
}

Topology example(const std::string& name) {
  Result<FleetSpec> spec = load_fleet_spec(path_of(name));
  EXPECT_TRUE(spec) << (spec ? "" : spec.error().text());
  if (!spec) return {};
  Result<Topology> topology = build_topology(*spec, test_catalog());
  EXPECT_TRUE(topology) << (topology ? "" : topology.error().text());
  return topology ? *std::move(topology) : Topology();
}

struct Totals {
  std::uint32_t nodes;
  std::uint32_t accelerators;
};

const std::map<std::string, Totals>& expected_totals() {
  static const std::map<std::string, Totals> kTotals = {
      {"superpod-h100", {127, 1016}},     {"meta-24k-h100", {3072, 24576}},
      {"gb200-nvl72-8racks", {144, 576}}, {"mi300x-512", {64, 512}},
      {"tpu-v5p-pod", {2240, 8960}},      {"trn2-ultraservers", {16, 256}},
      {"inferentia2-farm", {24, 288}},    {"scarce-mixed", {26, 152}},
      {"two-regions", {96, 768}},         {"laptop", {1, 1}}};
  return kTotals;
}

TEST(Examples, AreAllNamedInThisTestAndAfterTheirFiles) {
  std::set<std::string> files;
  const auto folder = std::filesystem::path(path_of("laptop")).parent_path();
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files.insert(entry.path().stem().string());
  }
  std::set<std::string> expected;
  for (const auto& [name, totals] : expected_totals()) {
    expected.insert(name);
    EXPECT_EQ(example(name).name(), name);
  }
  EXPECT_EQ(files, expected);
}

TEST(Examples, AddUpToWhatTheirSourcesSay) {
  for (const auto& [name, totals] : expected_totals()) {
    const Topology topology = example(name);
    EXPECT_EQ(topology.node_count(), totals.nodes) << name;
    EXPECT_EQ(topology.device_count(), totals.accelerators) << name;
  }
}

TEST(Examples, CanAllBeDrawn) {
  for (const auto& [name, totals] : expected_totals()) {
    const Topology topology = example(name);
    const std::string svg = draw_svg(topology, summarize(topology));
    EXPECT_NE(svg.find(">" + name + "<"), svg.npos) << name;
  }
}

TEST(Examples, SuperPodHasTheSwitchesOfItsReferenceArchitecture) {
  const Topology topology = example("superpod-h100");
  const Fabric& compute = topology.fabrics().front().graph;
  EXPECT_EQ(compute.switches(0), 32u);
  EXPECT_EQ(compute.switches(1), 16u);
  EXPECT_TRUE(summarize(topology).power.oversubscribed.empty());
}

TEST(Examples, MetaPodsAreNonBlockingInsideAndOversubscribedBetween) {
  const Topology topology = example("meta-24k-h100");
  const Fabric& roce = topology.fabrics().front().graph;
  EXPECT_NEAR(roce.oversubscription(0), 1, 1e-9);
  EXPECT_NEAR(roce.oversubscription(1), 7, 0.2);
}

TEST(Examples, Nvl72RacksAndTpuPodsAreOneScaleUpDomain) {
  EXPECT_EQ(example("gb200-nvl72-8racks").group(NodeId(0)).scale_up_devices, 72u);
  EXPECT_EQ(example("tpu-v5p-pod").group(NodeId(0)).scale_up_devices, 8960u);
  EXPECT_EQ(example("trn2-ultraservers").group(NodeId(0)).scale_up_devices, 64u);
}

TEST(Examples, TheMixedFleetCannotRunEverythingAtItsRating) {
  const FleetSummary summary = summarize(example("scarce-mixed"));
  EXPECT_EQ(summary.power.oversubscribed, std::vector<std::string>{"lab/machine-room/ups"});
  EXPECT_EQ(summary.types.size(), 5u);
}

TEST(Examples, RegionsDifferInPriceAndCarbon) {
  const Topology topology = example("two-regions");
  const auto sites = topology.sites();
  ASSERT_EQ(sites.size(), 2u);
  EXPECT_LT(*sites[0].electricity, *sites[1].electricity);
  EXPECT_LT(*sites[0].carbon, *sites[1].carbon);
  EXPECT_NE(sites[0].spec.residency, sites[1].spec.residency);
  ASSERT_EQ(topology.wan().size(), 1u);
  EXPECT_TRUE(topology.wan()[0].egress.has_value());
}

}  // namespace
}  // namespace orrery
