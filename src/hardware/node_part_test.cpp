#include "hardware/node_part.hpp"

#include <gtest/gtest.h>

#include "hardware/builtin_catalog.hpp"
#include "hardware/catalog.hpp"

namespace orrery {
namespace {

const Catalog& builtin() {
  static const Catalog kCatalog = Catalog::load(builtin_catalog(), {}).value();
  return kCatalog;
}

const NodeType& node(const char* id) { return *builtin().find<NodeType>(id); }

TEST(NodePart, KeepsWhatAnAcceleratorHas) {
  for (const NodeType& whole : builtin().all<NodeType>()) {
    const double all = static_cast<double>(whole.accelerators_per_node);
    for (int n = 1; n < whole.accelerators_per_node; ++n) {
      const NodeType part = part_of_node(whole, n);
      const double count = static_cast<double>(n);
      EXPECT_EQ(part.accelerators_per_node, n);
      EXPECT_EQ(part.like, whole.id);
      if (whole.max_power) {
        EXPECT_NEAR(part.max_power->value() / count, whole.max_power->value() / all, 1e-6);
      }
      EXPECT_EQ(n % part.scale_up_domain_accelerators, 0) << part.id;
      EXPECT_LE(part.scale_up_domain_accelerators, whole.scale_up_domain_accelerators);
      EXPECT_GE(part.compute_bandwidth.value() / count,
                whole.compute_bandwidth.value() / all * (1 - 1e-9));
    }
  }
}

TEST(NodePart, RoundsNicsUpToWholeOnes) {
  EXPECT_EQ(part_of_node(node("dgx-h100"), 3).compute_nics, 3);
  EXPECT_EQ(part_of_node(node("dgx1-v100-32g"), 3).compute_nics, 2);
  const NodeType single = part_of_node(node("aws-p3-16xlarge"), 1);
  EXPECT_EQ(single.compute_nics, 1);
  EXPECT_EQ(single.compute_bandwidth, node("aws-p3-16xlarge").compute_bandwidth);
}

TEST(NodePart, KeepsPairsOfABridgeWhereTheyFit) {
  EXPECT_EQ(part_of_node(node("h100-pcie-8"), 4).scale_up_domain_accelerators, 2);
  EXPECT_EQ(part_of_node(node("h100-pcie-8"), 3).scale_up_domain_accelerators, 1);
  EXPECT_EQ(part_of_node(node("dgx-h100"), 6).scale_up_domain_accelerators, 6);
}

TEST(NodePart, JoinsACatalogOnce) {
  const NodeType part = part_of_node(node("dgx-h100"), 4);
  const Result<Catalog> with = builtin().with(std::vector<NodeType>{part});
  ASSERT_TRUE(with) << with.error().text();
  ASSERT_NE(with->find<NodeType>("dgx-h100-4"), nullptr);
  EXPECT_EQ(with->all<NodeType>().size(), builtin().all<NodeType>().size() + 1);
  EXPECT_EQ(with->default_node(*with->find<Accelerator>("h100")).id, "dgx-h100");
  const Result<Catalog> twice = with->with(std::vector<NodeType>{part});
  ASSERT_FALSE(twice);
  EXPECT_NE(twice.error().message.find("dgx-h100-4"), std::string::npos);
}

}  // namespace
}  // namespace orrery
