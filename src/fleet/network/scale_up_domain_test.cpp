#include "fleet/network/scale_up_domain.hpp"

#include <gtest/gtest.h>

#include "fleet/fleet_test.hpp"
#include "fleet/spec/summary.hpp"

namespace orrery {
namespace {

std::optional<ScaleUpShape> shape_of(const std::string& name, int devices) {
  const Accelerator& accelerator = *test_catalog().find<Accelerator>(name);
  return *scale_up_shape(test_catalog(), accelerator, devices, std::nullopt);
}

double bisection_gb(const std::string& name, int devices) {
  const Accelerator& accelerator = *test_catalog().find<Accelerator>(name);
  return scale_up_bisection(test_catalog(), accelerator, *shape_of(name, devices))->value() / 1e9;
}

TEST(ScaleUpDomain, SwitchedDomainsOf8And72CrossHalfTheirBandwidth) {
  EXPECT_DOUBLE_EQ(bisection_gb("h100", 8), 4 * 450);
  EXPECT_DOUBLE_EQ(bisection_gb("gb200", 72), 36 * 900);
}

TEST(ScaleUpDomain, AMeshOf8HasOneLinkAPair) {
  EXPECT_DOUBLE_EQ(links_per_pair(std::get<FullMeshShape>(*shape_of("mi300x", 8))), 1);
  EXPECT_DOUBLE_EQ(bisection_gb("mi300x", 8), 16 * 64);
  EXPECT_DOUBLE_EQ(links_per_pair(std::get<FullMeshShape>(*shape_of("gaudi3", 8))), 3);
}

TEST(ScaleUpDomain, TorusesMeetTheVendorsPodFigures) {
  EXPECT_DOUBLE_EQ(bisection_gb("tpu-v5e", 256), 1600);
  EXPECT_DOUBLE_EQ(bisection_gb("tpu-v6e", 256), 3200);
  const Topology v4 = built(one_hall(
      "    - torus: {shape: [16, 16, 16], cube: [4, 4, 4]}\n      racks: [{count: 64, nodes: "
      "[{type: tpu-v4-host, count: 16}]}]\n"));
  const NodeGroup& group = v4.groups().front();
  EXPECT_DOUBLE_EQ(bisection_links(*group.scale_up_shape) * 50, 25'600);
}

TEST(ScaleUpDomain, SlowerLinksBetweenNodesNarrowTheCut) {
  // Trn2: 64 GB/s to the neighbours in z, 128 GB/s inside a node; 2 x 16 links cross the middle of
  // z.
  EXPECT_DOUBLE_EQ(bisection_gb("trn2", 64), 32 * 64);
}

TEST(ScaleUpDomain, EveryNodeTypeOfTheCatalogHasAShapeOrNoDomain) {
  for (const NodeType& node : test_catalog().all<NodeType>()) {
    const int domain = std::min(node.scale_up_domain_accelerators, node.accelerators_per_node);
    const Accelerator& accelerator = *test_catalog().find<Accelerator>(node.accelerator);
    const auto shape = scale_up_shape(test_catalog(), accelerator, domain, std::nullopt);
    ASSERT_TRUE(shape) << node.id;
    if (*shape) {
      EXPECT_EQ(accelerator_count(**shape), domain) << node.id;
    }
  }
}

TEST(ScaleUpDomain, ATwistThatDoesNotSuitIsRefusedWithItsLine) {
  const std::string text = refusal(
      one_hall("    - torus: {shape: [4, 4, 4], twisted: true}\n      racks: [{nodes: [{type: "
               "tpu-v5p-host, count: 16}]}]\n"));
  EXPECT_TRUE(text.starts_with("fleet.yaml:9:14: ")) << text;
}

TEST(ScaleUpDomain, ATorusAcrossNodesMustBeGivenItsShape) {
  EXPECT_NE(refusal(one_hall("    - racks: [{nodes: [{type: tpu-v5p-host, count: 16}]}]\n"))
                .find("give torus: {shape: "),
            std::string::npos);
}

}  // namespace
}  // namespace orrery
