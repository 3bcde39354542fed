// fleet/network/dragonfly_test.cpp - known dragonflies, and properties that hold for any
// parameters.
#include "fleet/network/dragonfly.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/numbers/rng.hpp"
#include "fleet/network/fabric_audit.hpp"

namespace orrery {
namespace {

using Variant = DragonflyParameters::Variant;

constexpr BytesPerSecond kNic{25e9};

/// Returns the cables between every two groups.
std::map<std::pair<std::uint32_t, std::uint32_t>, int> global_cables(const Fabric& fabric) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, int> counts;
  for (std::uint32_t i = 0; i < fabric.switches().size(); ++i) {
    const Fabric::Uplinks up = fabric.uplinks(SwitchIndex(i));
    for (std::size_t k = 0; k < up.uppers.size(); ++k) {
      const std::uint32_t a = fabric.switches()[i].group;
      const std::uint32_t b = fabric.switches()[up.uppers[k].value()].group;
      if (a != b) counts[{a, b}] += up.cables[k];
    }
  }
  return counts;
}

// The example of the dragonfly paper: p = h = 2, a = 4, 9 groups, 72 endpoints.
TEST(Dragonfly, OfRadixSevenJoins72EndpointsInNineGroups) {
  const Fabric fabric =
      build_dragonfly({.nodes = 72, .nics_per_node = 1, .radix = 7, .nic_bandwidth = kNic}).value();
  EXPECT_EQ(fabric.kind(), NetworkKind::kDragonfly);
  EXPECT_EQ(fabric.switches(0), 36U);
  EXPECT_EQ(fabric.cables(0), 9U * 6U);
  EXPECT_EQ(fabric.cables(1), 36U);
  for (const auto& [groups, cables] : global_cables(fabric)) EXPECT_EQ(cables, 1);
  EXPECT_EQ(fabric.bisection(), kNic * 20);  // 4 groups against 5
  EXPECT_DOUBLE_EQ(fabric.oversubscription(0), 2.0 / 3);
  EXPECT_DOUBLE_EQ(fabric.oversubscription(1), 1);
  EXPECT_EQ(FabricAudit(fabric, 7).run(), "");
  EXPECT_EQ(build_dragonfly({.nodes = 73, .nics_per_node = 1, .radix = 7, .nic_bandwidth = kNic})
                .error()
                .message,
            "73 nodes need 10 groups, but 8 global links a group reach only 9 groups, 72 nodes in "
            "all: use a larger radix, more global links or larger groups");
}

TEST(Dragonfly, PutsAllNicsOfANodeOnOneRouter) {
  const Fabric fabric =
      build_dragonfly({.nodes = 200, .nics_per_node = 4, .radix = 64, .nic_bandwidth = kNic})
          .value();
  for (std::uint32_t node = 0; node < 200; ++node) {
    for (std::uint32_t port = 1; port < 4; ++port) {
      EXPECT_EQ(fabric.leaf_of({node, port}), fabric.leaf_of({node, 0}));
    }
  }
  EXPECT_EQ(fabric.tier_between(0, 3), NetworkTier::kLeaf);
  EXPECT_EQ(fabric.tier_between(3, 4), NetworkTier::kSpine);
  EXPECT_EQ(fabric.tier_between(127, 128), NetworkTier::kCore);
}

TEST(Dragonfly, SpreadsAllGlobalPortsEvenlyOverFewGroups) {
  const Fabric fabric =
      build_dragonfly({.nodes = 512, .nics_per_node = 4, .radix = 64, .nic_bandwidth = kNic})
          .value();
  // 4 groups of 512 global ports: 170 to each other group, and 2 left for a ring of groups.
  EXPECT_EQ(fabric.cables(1), 4U * 512U / 2U);
  const auto counts = global_cables(fabric);
  EXPECT_EQ(counts.size(), 6U);
  EXPECT_EQ(counts.at({0, 1}), 171);
  EXPECT_EQ(counts.at({0, 2}), 170);
  EXPECT_EQ(counts.at({0, 3}), 171);
}

TEST(Dragonfly, OfOneGroupHasOnlyTheRoutersItNeeds) {
  const Fabric fabric =
      build_dragonfly({.nodes = 10, .nics_per_node = 4, .radix = 64, .nic_bandwidth = kNic})
          .value();
  EXPECT_EQ(fabric.switches(0), 3U);
  EXPECT_EQ(fabric.cables(0), 3U);
  EXPECT_EQ(fabric.cables(1), 0U);
  EXPECT_EQ(fabric.bisection(), kNic * 2);
  const Fabric single =
      build_dragonfly({.nodes = 4, .nics_per_node = 4, .radix = 64, .nic_bandwidth = kNic}).value();
  EXPECT_EQ(single.kind(), NetworkKind::kSingleSwitch);
  EXPECT_EQ(single.switches().size(), 1U);
}

TEST(DragonflyPlus, HasGroupsOfLeavesAndSpinesAndGlobalCablesBetweenSpines) {
  const Fabric fabric = build_dragonfly({.nodes = 5 * 16,
                                         .nics_per_node = 1,
                                         .radix = 8,
                                         .nic_bandwidth = kNic,
                                         .variant = Variant::kPlus})
                            .value();
  EXPECT_EQ(fabric.kind(), NetworkKind::kDragonflyPlus);
  EXPECT_EQ(fabric.switches(0), 20U);
  EXPECT_EQ(fabric.switches(1), 20U);
  EXPECT_EQ(fabric.cables(0), 5U * 16U);
  EXPECT_EQ(fabric.cables(1), 5U * 16U / 2U);
  for (const auto& [groups, cables] : global_cables(fabric)) EXPECT_EQ(cables, 4);
  EXPECT_EQ(fabric.bisection(), kNic * 24);  // 2 groups against 3, 4 cables each
  EXPECT_EQ(fabric.tier_between(0, 3), NetworkTier::kLeaf);
  EXPECT_EQ(fabric.tier_between(3, 4), NetworkTier::kSpine);
  EXPECT_EQ(fabric.tier_between(15, 16), NetworkTier::kCore);
  EXPECT_EQ(FabricAudit(fabric, 8).run(), "");
}

TEST(DragonflyPlus, OfOneGroupIsALeafSpineTree) {
  DragonflyParameters p{.nodes = 6, .nics_per_node = 1, .radix = 8, .nic_bandwidth = kNic};
  p.variant = Variant::kPlus;
  const Fabric fabric = build_dragonfly(p).value();
  EXPECT_EQ(fabric.switches(0), 2U);
  EXPECT_EQ(fabric.switches(1), 4U);
  EXPECT_EQ(fabric.bisection(), kNic * 3);
  p.nodes = 4;
  EXPECT_EQ(build_dragonfly(p)->kind(), NetworkKind::kSingleSwitch);
  EXPECT_EQ(build_dragonfly(p)->switches().size(), 1U);
}

TEST(Dragonfly, FollowsTheBalanceFromWhatIsGiven) {
  DragonflyParameters p{.nodes = 24, .nics_per_node = 1, .radix = 64, .nic_bandwidth = kNic};
  p.terminals = 3;  // a = 6, h = 3: groups of 18
  Fabric fabric = build_dragonfly(p).value();
  EXPECT_EQ(fabric.switches(0), 12U);
  EXPECT_EQ(fabric.cables(1), 18U);
  p.routers_per_group = 2;
  p.global_links_per_router = 5;
  fabric = build_dragonfly(p).value();
  EXPECT_EQ(fabric.switches(0), 8U);
  EXPECT_EQ(fabric.cables(1), 4U * 10U / 2U);
}

TEST(Dragonfly, SaysWhatMakesNoSenseOrDoesNotFit) {
  const DragonflyParameters good{
      .nodes = 72, .nics_per_node = 1, .radix = 7, .nic_bandwidth = kNic};
  const auto message = [&good](auto change) {
    DragonflyParameters p = good;
    change(p);
    const Result<Fabric> built = build_dragonfly(p);
    return built ? std::string("built") : built.error().message;
  };
  EXPECT_EQ(message([](auto&) {}), "built");
  EXPECT_EQ(message([](auto& p) { p.nodes = -1; }),
            "nodes of a dragonfly must be 1 to 8,388,608, not -1");
  EXPECT_EQ(message([](auto& p) { p.terminals = 0; }),
            "terminals of a dragonfly must be 1 to 4,096, not 0");
  EXPECT_EQ(message([](auto& p) { p.nic_bandwidth = BytesPerSecond(0); }),
            "the NIC bandwidth of a dragonfly must be above 0");
  EXPECT_EQ(message([](auto& p) { p.nics_per_node = 3; }),
            "a node of 3 NICs does not fit a router with 2 terminals: use a larger radix or more "
            "terminals");
  EXPECT_EQ(message([](auto& p) { p.routers_per_group = 5; }),
            "a router of 2 terminals, 4 other routers in its group and 2 global links needs 8 "
            "ports, but the radix is 7");
  EXPECT_EQ(message([](auto& p) {
              p.variant = Variant::kPlus;
              p.terminals = 5;
            }),
            "groups of 3 leaves and 3 spines with 5 terminals a leaf and 4 global links a spine "
            "need 8 ports on a switch, but the radix is 7");
  EXPECT_EQ(message([](auto& p) {
              p.variant = Variant::kPlus;
              p.radix = 1;
            }),
            "a node of 1 NICs does not fit a router with 0 terminals: use a larger radix or more "
            "terminals");
  EXPECT_NE(message([](auto& p) {
              p.nodes = 8'000'000;
              p.radix = 4096;
              p.terminals = 2;
              p.routers_per_group = 2000;
            }).find("more than the 16,777,216 that can be held"),
            std::string::npos);
}

DragonflyParameters random_parameters(Rng& rng) {
  const auto among = [&rng](const auto&... choices) {
    const std::array values{choices...};
    return values[rng.below(values.size())];
  };
  DragonflyParameters p;
  p.nodes = 1 + static_cast<int>(rng.below(among(10U, 100U, 800U)));
  p.nics_per_node = among(1, 1, 2, 3, 4, 8);
  p.radix = among(7, 8, 11, 16, 24, 31, 64);
  p.nic_bandwidth = kNic;
  p.variant = among(Variant::kDragonfly, Variant::kPlus);
  if (rng.below(4) == 0) p.terminals = 1 + static_cast<int>(rng.below(10));
  if (rng.below(4) == 0) p.routers_per_group = 1 + static_cast<int>(rng.below(10));
  if (rng.below(4) == 0) p.global_links_per_router = 1 + static_cast<int>(rng.below(10));
  return p;
}

TEST(Dragonfly, OfAnyParametersIsJoinedWithinItsPortsAndEvenBetweenGroups) {
  Rng rng(77);
  int built = 0;
  int many_groups = 0;
  for (int i = 0; i < 750; ++i) {
    const DragonflyParameters p = random_parameters(rng);
    SCOPED_TRACE(fmt::format("nodes {} nics {} radix {} plus {} p {} a {} h {}", p.nodes,
                             p.nics_per_node, p.radix, static_cast<int>(p.variant),
                             p.terminals.value_or(0), p.routers_per_group.value_or(0),
                             p.global_links_per_router.value_or(0)));
    const Result<Fabric> fabric = build_dragonfly(p);
    if (!fabric) {
      EXPECT_EQ(fabric.error().kind, ErrorKind::kInfeasible) << fabric.error().text();
      continue;
    }
    ++built;
    ASSERT_EQ(FabricAudit(*fabric, p.radix).run(), "");
    ASSERT_EQ(*fabric, build_dragonfly(p).value());
    ASSERT_LE(fabric->bisection(), kNic * (p.nodes * p.nics_per_node / 2.0));
    const std::uint32_t groups = fabric->switches().back().group + 1;
    const auto counts = global_cables(*fabric);
    ASSERT_EQ(counts.size(), groups * (groups - 1) / 2);
    if (counts.empty()) continue;
    ++many_groups;
    const auto [low, high] =
        std::ranges::minmax_element(counts, {}, [](const auto& entry) { return entry.second; });
    ASSERT_LE(high->second - low->second, 1);
  }
  EXPECT_GT(built, 350);
  EXPECT_GT(many_groups, 150);
}

}  // namespace
}  // namespace orrery
