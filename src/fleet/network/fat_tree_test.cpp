// fleet/network/fat_tree_test.cpp - switch counts that vendors publish, and properties that hold
// for any parameters.
#include "fleet/network/fat_tree.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/format/document.hpp"
#include "base/format/field_reader.hpp"
#include "base/numbers/rng.hpp"
#include "fleet/network/fabric_audit.hpp"
#include "hardware/fat_tree_vector.hpp"

namespace orrery {
namespace {

using Rails = FatTreeParameters::Rails;

constexpr BytesPerSecond kNic{50e9};

Result<std::vector<FatTreeVector>> read_vectors() {
  Result<Document> document = Document::load(ORRERY_SOURCE_DIR "/catalog/fabrics.yaml");
  if (!document) return forward_error(document);
  std::vector<FatTreeVector> vectors;
  for (const auto& [key, value] : document->root().entries()) {
    if (key.text() != "fat_tree_vectors") continue;
    for (const DocumentNode& item : value.items()) {
      FatTreeVector vector;
      if (Status read = read_struct(item, vector, {.units = Units::kInTextOrKey}); !read) {
        return forward_error(read);
      }
      vectors.push_back(std::move(vector));
    }
  }
  return vectors;
}

TEST(FatTree, HasTheSwitchesAndCablesOfTheVendorsTables) {
  const Result<std::vector<FatTreeVector>> vectors = read_vectors();
  ASSERT_TRUE(vectors.has_value()) << vectors.error().text();
  int rows = 0;
  for (const FatTreeVector& table : *vectors) {
    for (const FatTreeCount& row : table.rows) {
      SCOPED_TRACE(fmt::format("radix {}, {} nodes", table.switch_radix, row.nodes));
      const Result<Fabric> fabric = build_fat_tree({.nodes = row.nodes,
                                                    .nics_per_node = table.nics_per_node,
                                                    .radix = table.switch_radix,
                                                    .nic_bandwidth = kNic,
                                                    .rails = Rails::kPerLeaf});
      ASSERT_TRUE(fabric.has_value()) << fabric.error().text();
      EXPECT_EQ(fabric->switches(0), static_cast<std::uint32_t>(row.leaves));
      EXPECT_EQ(fabric->switches(1), static_cast<std::uint32_t>(row.spines));
      EXPECT_EQ(fabric->switches(2), static_cast<std::uint32_t>(row.cores.value_or(0)));
      const auto endpoints =
          static_cast<std::uint64_t>(row.nodes) * static_cast<std::uint64_t>(table.nics_per_node);
      EXPECT_EQ(endpoints, static_cast<std::uint64_t>(row.accelerators));
      EXPECT_EQ(fabric->cables(0), endpoints);
      if (row.leaf_spine_cables) {
        EXPECT_EQ(fabric->cables(0), static_cast<std::uint64_t>(*row.leaf_spine_cables));
      }
      if (row.spine_core_cables) {
        EXPECT_EQ(fabric->cables(1), static_cast<std::uint64_t>(*row.spine_core_cables));
      }
      EXPECT_EQ(fabric->bisection(), kNic * (static_cast<double>(endpoints) / 2));
      EXPECT_DOUBLE_EQ(fabric->oversubscription(0), 1);
      EXPECT_DOUBLE_EQ(fabric->oversubscription(1), 1);
      EXPECT_EQ(FabricAudit(*fabric, table.switch_radix).run(), "");
      ++rows;
    }
  }
  EXPECT_EQ(rows, 11);
}

TEST(FatTree, OfASuperPodOf127NodesHasFourUnitsAnd32LeavesAnd16Spines) {
  const Fabric fabric = build_fat_tree({.nodes = 127,
                                        .nics_per_node = 8,
                                        .radix = 64,
                                        .nic_bandwidth = kNic,
                                        .rails = Rails::kPerLeaf})
                            .value();
  EXPECT_EQ(fabric.kind(), NetworkKind::kRailOptimizedFatTree);
  EXPECT_EQ(fabric.switches(0), 32U);
  EXPECT_EQ(fabric.switches(1), 16U);
  EXPECT_EQ(fabric.cables(0), 1024U);
  EXPECT_EQ(fabric.bisection(), kNic * 508);  // half of 1016 NICs
  EXPECT_EQ(fabric.tier_between(0, 31), NetworkTier::kLeaf);
  EXPECT_EQ(fabric.tier_between(31, 32), NetworkTier::kSpine);
}

TEST(FatTree, PutsEachRailOnItsLeafOfTheUnit) {
  const Fabric fabric = build_fat_tree({.nodes = 70,
                                        .nics_per_node = 8,
                                        .radix = 64,
                                        .nic_bandwidth = kNic,
                                        .rails = Rails::kPerLeaf})
                            .value();
  for (std::uint32_t rail = 0; rail < 8; ++rail) {
    const Switch& leaf = fabric.switches()[fabric.leaf_of({69, rail}).value()];
    EXPECT_EQ(leaf.position, rail);
    EXPECT_EQ(leaf.group, 2U);
    EXPECT_EQ(fabric.leaf_of({64, rail}), fabric.leaf_of({69, rail}));
    EXPECT_NE(fabric.leaf_of({63, rail}), fabric.leaf_of({69, rail}));
  }
}

// The training network of Llama 3: pods of 3,072 accelerators, 1:7 above them (topology_rules).
TEST(FatTree, WithPodsOversubscribedSevenfoldHasASeventhOfTheBandwidthBetweenThem) {
  const Fabric fabric = build_fat_tree({.nodes = 8 * 384,
                                        .nics_per_node = 8,
                                        .radix = 128,
                                        .nic_bandwidth = kNic,
                                        .rails = Rails::kTogether,
                                        .spine_oversubscription = 7,
                                        .unit_nodes = 8,
                                        .pod_nodes = 384})
                            .value();
  EXPECT_EQ(fabric.kind(), NetworkKind::kFatTree);
  EXPECT_EQ(fabric.switches(0), 8U * 48U);
  EXPECT_EQ(fabric.cables(0), 24'576U);
  EXPECT_DOUBLE_EQ(fabric.oversubscription(0), 1);
  EXPECT_NEAR(fabric.oversubscription(1), 7, 0.25);
  EXPECT_NEAR(fabric.bisection() / (kNic * 12'288), 1.0 / 7, 0.004);
  EXPECT_EQ(fabric.tier_between(0, 7), NetworkTier::kLeaf);
  EXPECT_EQ(fabric.tier_between(0, 383), NetworkTier::kSpine);
  EXPECT_EQ(fabric.tier_between(383, 384), NetworkTier::kCore);
  EXPECT_EQ(FabricAudit(fabric, 128).run(), "");
}

TEST(FatTree, KeepsTwoLevelsForPodsThatAreNotOversubscribed) {
  FatTreeParameters p{.nodes = 64, .nics_per_node = 1, .radix = 16, .nic_bandwidth = kNic};
  p.pod_nodes = 32;
  EXPECT_EQ(build_fat_tree(p)->switches(2), 0U);
  p.spine_oversubscription = 3;
  EXPECT_GT(build_fat_tree(p)->switches(2), 0U);
  p.pod_nodes.reset();
  EXPECT_EQ(build_fat_tree(p)->switches(2), 0U);
}

TEST(FatTree, RoundsPodsUpToWholeUnits) {
  FatTreeParameters p{.nodes = 64, .nics_per_node = 1, .radix = 16, .nic_bandwidth = kNic};
  p.spine_oversubscription = 3;
  p.pod_nodes = 17;  // units of 8: pods of 24
  const Fabric fabric = build_fat_tree(p).value();
  EXPECT_EQ(fabric.tier_between(0, 23), NetworkTier::kSpine);
  EXPECT_EQ(fabric.tier_between(23, 24), NetworkTier::kCore);
}

TEST(FatTree, OfOneLeafIsASingleSwitch) {
  FatTreeParameters p{.nodes = 4, .nics_per_node = 2, .radix = 16, .nic_bandwidth = kNic};
  const Fabric fabric = build_fat_tree(p).value();
  EXPECT_EQ(fabric.kind(), NetworkKind::kSingleSwitch);
  EXPECT_EQ(fabric.switches().size(), 1U);
  EXPECT_EQ(fabric.cables(0), 0U);
  EXPECT_EQ(fabric.bisection(), kNic * 4);
  p.planes = 4;
  const Fabric planes = build_fat_tree(p).value();
  EXPECT_EQ(planes.kind(), NetworkKind::kSingleSwitch);
  EXPECT_EQ(planes.switches().size(), 4U);
  EXPECT_EQ(planes.ports_per_node(), 8U);
  EXPECT_EQ(planes.port_bandwidth(), kNic / 4);
  EXPECT_EQ(planes.bisection(), kNic * 4);
}

TEST(FatTree, OfSeparateRailsIsATreeForEachRail) {
  FatTreeParameters p{.nodes = 64, .nics_per_node = 8, .radix = 64, .nic_bandwidth = kNic};
  p.rails = Rails::kSeparate;
  const Fabric fabric = build_fat_tree(p).value();
  EXPECT_EQ(fabric.kind(), NetworkKind::kRailOnlyFatTree);
  EXPECT_EQ(fabric.switches(0), 16U);
  EXPECT_EQ(fabric.switches(1), 8U);
  EXPECT_EQ(fabric.bisection(), kNic * 256);
  for (std::uint32_t rail = 0; rail < 8; ++rail) {
    EXPECT_EQ(fabric.switches()[fabric.leaf_of({63, rail}).value()].plane, rail);
  }
  EXPECT_EQ(FabricAudit(fabric, 64).run(), "");
}

TEST(FatTree, AdjacentPortsOfANicAreInDifferentPlanes) {
  for (const Rails rails : {Rails::kTogether, Rails::kPerLeaf, Rails::kSeparate}) {
    FatTreeParameters p{.nodes = 40, .nics_per_node = 4, .radix = 16, .nic_bandwidth = kNic};
    p.rails = rails;
    p.planes = 2;
    const Fabric fabric = build_fat_tree(p).value();
    EXPECT_EQ(fabric.ports_per_node(), 8U);
    EXPECT_EQ(fabric.switches()[fabric.leaf_of({5, 2}).value()].plane % 2, 0);
    EXPECT_EQ(fabric.switches()[fabric.leaf_of({5, 3}).value()].plane % 2, 1);
    EXPECT_EQ(FabricAudit(fabric, 16).run(), "");
  }
}

TEST(FatTree, HoldsAQuarterOfTheRadixCubedAndNoMore) {
  for (const int radix : {4, 6, 8, 16}) {
    FatTreeParameters p{.nodes = radix * radix * radix / 4,
                        .nics_per_node = 1,
                        .radix = radix,
                        .nic_bandwidth = kNic};
    const Fabric full = build_fat_tree(p).value();
    const auto half = static_cast<std::uint32_t>(radix / 2);
    EXPECT_EQ(full.switches(0), 2 * half * half);
    EXPECT_EQ(full.switches(1), 2 * half * half);
    EXPECT_EQ(full.switches(2), half * half);
    EXPECT_EQ(full.bisection(), kNic * (p.nodes / 2));
    const std::string most = print_count(p.nodes);
    ++p.nodes;
    const Result<Fabric> over = build_fat_tree(p);
    ASSERT_FALSE(over.has_value());
    EXPECT_EQ(over.error().kind, ErrorKind::kInfeasible);
    EXPECT_NE(over.error().message.find(most + " nodes in all"), std::string::npos)
        << over.error().message;
  }
}

TEST(FatTree, AMillionNicsNeedSeparateRailsAndTakeThirteenMegabytes) {
  FatTreeParameters p{.nodes = 131'072, .nics_per_node = 8, .radix = 144, .nic_bandwidth = kNic};
  p.rails = Rails::kPerLeaf;
  const Result<Fabric> joint = build_fat_tree(p);
  ASSERT_FALSE(joint.has_value());
  EXPECT_NE(joint.error().message.find("separate rails"), std::string::npos);
  p.rails = Rails::kSeparate;
  const Fabric fabric = build_fat_tree(p).value();
  EXPECT_EQ(fabric.switches(0), 8U * 1821U);
  EXPECT_EQ(fabric.bisection(), kNic * (131'072 * 4));
  EXPECT_LT(fabric.footprint().value(), 13e6);
}

TEST(FatTree, SaysWhichParameterMakesNoSense) {
  const FatTreeParameters good{.nodes = 8, .nics_per_node = 2, .radix = 16, .nic_bandwidth = kNic};
  ASSERT_TRUE(build_fat_tree(good).has_value());
  const auto message = [&good](auto change) {
    FatTreeParameters p = good;
    change(p);
    const Result<Fabric> built = build_fat_tree(p);
    if (built) return std::string("built");
    EXPECT_EQ(built.error().kind, ErrorKind::kInput);
    return built.error().message;
  };
  EXPECT_EQ(message([](auto& p) { p.nodes = 0; }),
            "nodes of a fat tree must be 1 to 8,388,608, not 0");
  EXPECT_EQ(message([](auto& p) { p.radix = 5000; }),
            "switch radix of a fat tree must be 1 to 4,096, not 5,000");
  EXPECT_EQ(message([](auto& p) { p.planes = 200; }),
            "NIC ports per node of a fat tree must be 1 to 256, not 400");
  EXPECT_EQ(message([](auto& p) { p.nodes = 8'000'000; }),
            "NIC ports of a fat tree must be 1 to 8,388,608, not 16,000,000");
  EXPECT_EQ(message([](auto& p) { p.nic_bandwidth = BytesPerSecond(0); }),
            "the NIC bandwidth of a fat tree must be above 0");
  EXPECT_EQ(message([](auto& p) { p.spine_oversubscription = 0; }),
            "spine oversubscription must be 0.01 to 100, not 0");
  EXPECT_EQ(message([](auto& p) { p.unit_nodes = -1; }),
            "unit nodes of a fat tree must be 1 to 8,388,608, not -1");
}

TEST(FatTree, SaysWhyUnitsAndPodsDoNotFit) {
  FatTreeParameters p{.nodes = 400, .nics_per_node = 4, .radix = 16, .nic_bandwidth = kNic};
  p.unit_nodes = 3;
  EXPECT_EQ(build_fat_tree(p).error().message,
            "a unit of 3 nodes needs 12 ports on its leaf, but radix 16 at leaf oversubscription 1 "
            "leaves 8 for nodes: use a larger radix, fewer nodes a unit or a leaf for each rail");
  p.unit_nodes.reset();
  p.pod_nodes = 40;
  EXPECT_EQ(
      build_fat_tree(p).error().message,
      "a pod of 20 leaves is too large: a spine of radix 16 at spine oversubscription 1 has "
      "8 ports down, one at least for each leaf: use smaller pods, a larger radix or separate "
      "rails");
  p.nics_per_node = 10;
  EXPECT_EQ(build_fat_tree(p).error().kind, ErrorKind::kInfeasible);
}

TEST(FatTree, RefusesANetworkTooLargeToHold) {
  FatTreeParameters p{.nodes = 1'000'000, .nics_per_node = 1, .radix = 4096, .nic_bandwidth = kNic};
  p.leaf_oversubscription = 0.01;
  p.unit_nodes = 1;
  const Result<Fabric> built = build_fat_tree(p);
  ASSERT_FALSE(built.has_value());
  EXPECT_EQ(built.error().kind, ErrorKind::kInfeasible);
}

FatTreeParameters random_parameters(Rng& rng) {
  const auto among = [&rng](const auto&... choices) {
    const std::array values{choices...};
    return values[rng.below(values.size())];
  };
  FatTreeParameters p;
  p.nodes = 1 + static_cast<int>(rng.below(among(8U, 60U, 500U)));
  p.nics_per_node = among(1, 1, 2, 3, 4, 8);
  p.radix = among(4, 7, 8, 12, 16, 31, 36, 64, 144);
  p.nic_bandwidth = kNic;
  p.rails = among(Rails::kTogether, Rails::kPerLeaf, Rails::kSeparate);
  p.leaf_oversubscription = among(1.0, 1.0, 0.5, 1.5, 2.0, 7.0 / 3, 3.0);
  p.spine_oversubscription = among(1.0, 1.0, 0.5, 1.1, 3.0, 7.0);
  p.planes = among(1, 1, 1, 2, 4);
  if (rng.below(3) == 0) p.unit_nodes = 1 + static_cast<int>(rng.below(8));
  if (rng.below(3) == 0) p.pod_nodes = 1 + static_cast<int>(rng.below(100));
  return p;
}

std::string text(const FatTreeParameters& p) {
  return fmt::format(
      "nodes {} nics {} radix {} rails {} oversubscription {} {} planes {} unit {} pod {}", p.nodes,
      p.nics_per_node, p.radix, static_cast<int>(p.rails), p.leaf_oversubscription,
      p.spine_oversubscription, p.planes, p.unit_nodes.value_or(0), p.pod_nodes.value_or(0));
}

TEST(FatTree, OfAnyParametersIsJoinedWithinItsPortsAndTheSameEveryTime) {
  Rng rng(2024);
  int built = 0;
  int three_levels = 0;
  for (int i = 0; i < 1500; ++i) {
    const FatTreeParameters p = random_parameters(rng);
    SCOPED_TRACE(text(p));
    const Result<Fabric> fabric = build_fat_tree(p);
    if (!fabric) {
      EXPECT_EQ(fabric.error().kind, ErrorKind::kInfeasible) << fabric.error().text();
      continue;
    }
    ++built;
    three_levels += fabric->switches(2) > 0 ? 1 : 0;
    ASSERT_EQ(FabricAudit(*fabric, p.radix).run(), "");
    ASSERT_EQ(*fabric, build_fat_tree(p).value());
    // Rounding only ever adds uplinks.
    if (fabric->switches(1) > 0) {
      ASSERT_LE(fabric->oversubscription(0), p.leaf_oversubscription + 1e-6);
    }
    if (fabric->switches(2) > 0) {
      ASSERT_LE(fabric->oversubscription(1), p.spine_oversubscription + 1e-6);
    }
    ASSERT_LE(fabric->bisection(), kNic * (p.nodes * p.nics_per_node / 2.0));
  }
  EXPECT_GT(built, 800);
  EXPECT_GT(three_levels, 150);
}

}  // namespace
}  // namespace orrery
