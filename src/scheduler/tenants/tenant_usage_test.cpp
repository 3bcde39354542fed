#include "scheduler/tenants/tenant_usage.hpp"

#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "scheduler/tenants/tenants_test.hpp"

namespace orrery {
namespace {

// A group with one guaranteed child, one that uses the group's guarantee, and a tenant of its own.
const std::string kLab =
    "- {name: lab, guarantee: {h100: 64}}\n"
    "- {name: lab/vision, guarantee: {h100: 32}}\n"
    "- {name: lab/scratch}\n"
    "- {name: ops, guarantee: {h100: 16, '*': 40}}\n"
    "- {name: guest}\n";

struct Lab {
  TenantTree tree = tree_of(kLab);
  TenantUsage usage{tree};
  TenantId lab = tenant(tree, "lab");
  TenantId vision = tenant(tree, "lab/vision");
  TenantId scratch = tenant(tree, "lab/scratch");
  TenantId ops = tenant(tree, "ops");
  TenantId guest = tenant(tree, "guest");
};

TEST(TenantUsage, CountsForEveryTenantAbove) {
  Lab lab;
  lab.usage.apply({lab.vision, kH100, 0, 8});
  lab.usage.apply({lab.scratch, kA100, 3, 4});
  EXPECT_EQ(lab.usage.used(lab.vision, kH100), 8);
  EXPECT_EQ(lab.usage.used(lab.lab, kH100), 8);
  EXPECT_EQ(lab.usage.used(lab.lab, kA100), 4);
  EXPECT_EQ(lab.usage.used(lab.lab, kAllTypes), 12);
  EXPECT_EQ(lab.usage.used(TenantTree::root(), kAllTypes), 12);
  EXPECT_EQ(lab.usage.used(lab.ops, kAllTypes), 0);
}

TEST(TenantUsage, CountsByPriority) {
  Lab lab;
  lab.usage.apply({lab.vision, kH100, 5, 8});
  lab.usage.apply({lab.vision, kA100, 5, 2});
  lab.usage.apply({lab.vision, kH100, -1, 16});
  EXPECT_EQ(lab.usage.used_at_least(lab.lab, kH100, 6), 0);
  EXPECT_EQ(lab.usage.used_at_least(lab.lab, kH100, 5), 8);
  EXPECT_EQ(lab.usage.used_at_least(lab.lab, kAllTypes, 0), 10);
  EXPECT_EQ(lab.usage.used_at_least(lab.lab, kAllTypes, -1), 26);
}

TEST(TenantUsage, EqualsARecountAfterAnySequenceOfChanges) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed);
    const TenantTree tree = random_tree(rng, 12);
    TenantUsage usage(tree);
    std::map<std::tuple<TenantId, FleetTypeId, std::int32_t>, std::int64_t> held;
    for (int step = 0; step < 300; ++step) {
      const TenantId id(1 + static_cast<std::uint32_t>(rng.below(tree.size() - 1)));
      const FleetTypeId type(static_cast<std::uint32_t>(rng.below(2)));
      const auto priority = static_cast<std::int32_t>(rng.below(4)) - 2;
      std::int64_t& mine = held[{id, type, priority}];
      const std::int64_t next = rng.below(3) == 0 ? 0 : static_cast<std::int64_t>(rng.below(9));
      usage.apply({id, type, priority, next - mine});
      mine = next;
    }
    for (std::uint32_t t = 0; t < tree.size(); ++t) {
      for (std::int32_t priority = -3; priority <= 2; ++priority) {
        std::int64_t h100 = 0;
        std::int64_t all = 0;
        for (const auto& [key, devices] : held) {
          const auto& [id, type, at] = key;
          if (at < priority || tree.common_ancestor(id, TenantId(t)) != TenantId(t)) continue;
          all += devices;
          if (type == kH100) h100 += devices;
        }
        EXPECT_EQ(usage.used_at_least(TenantId(t), kH100, priority), h100);
        EXPECT_EQ(usage.used_at_least(TenantId(t), kAllTypes, priority), all);
        EXPECT_TRUE(priority > -3 || usage.used(TenantId(t), kAllTypes) == all);
      }
    }
  }
}

TEST(TenantUsage, HalvesThePastEveryHalfLife) {
  Lab lab;
  lab.usage.apply({lab.vision, kH100, 0, 8});
  lab.usage.advance(Duration::hours(1));
  EXPECT_NEAR(lab.usage.recent(lab.lab, kH100), 4, 1e-12);
  lab.usage.apply({lab.vision, kH100, 0, -8});
  lab.usage.advance(Duration::hours(2));
  EXPECT_NEAR(lab.usage.recent(lab.vision, kAllTypes), 1, 1e-12);
  EXPECT_EQ(lab.usage.recent(lab.ops, kH100), 0);
}

TEST(TenantUsage, DecaysTheSameInOneStepAsInMany) {
  Lab one;
  Lab many;
  for (Lab* lab : {&one, &many}) lab->usage.apply({lab->ops, kA100, 0, 48});
  one.usage.advance(Duration::minutes(90));
  for (int i = 0; i < 900; ++i) many.usage.advance(Duration::seconds(6));
  EXPECT_NEAR(one.usage.recent(one.ops, kA100), many.usage.recent(many.ops, kA100), 1e-10);
}

TEST(TenantUsage, RecentUsageTendsToWhatIsHeld) {
  Lab lab;
  lab.usage.apply({lab.guest, kA100, 0, 5});
  lab.usage.advance(Duration::hours(1000));
  EXPECT_NEAR(lab.usage.recent(lab.guest, kA100), 5, 1e-9);
}

TEST(TenantRoom, IsEndlessWithoutLimits) {
  const Lab lab;
  EXPECT_EQ(lab.usage.room(lab.guest, kH100).devices, kUnlimited);
  EXPECT_EQ(lab.usage.room(lab.guest, kH100).bound, RoomBound::kNone);
}

TEST(TenantRoom, NamesTheTightestLimitOfThePath) {
  const TenantTree tree =
      tree_of("- {name: a, limit: {'*': 20}}\n- {name: a/x, limit: {h100: 12}}\n- {name: a/y}\n");
  TenantUsage usage(tree);
  const TenantId x = tenant(tree, "a/x");
  Room room = usage.room(x, kH100);
  EXPECT_EQ(room.devices, 12);
  EXPECT_EQ(room.tenant, x);
  EXPECT_EQ(room.type, kH100);
  EXPECT_EQ(room.bound, RoomBound::kLimit);
  EXPECT_EQ(usage.room(x, kA100).devices, 20);

  usage.apply({tenant(tree, "a/y"), kA100, 0, 15});
  room = usage.room(x, kH100);
  EXPECT_EQ(room.devices, 5);
  EXPECT_EQ(room.tenant, tenant(tree, "a"));
  EXPECT_EQ(room.type, kAllTypes);
}

TEST(TenantRoom, IsTheGuaranteeOfATenantThatMayNotBorrow) {
  const TenantTree tree =
      tree_of("- {name: a, guarantee: {h100: 8, '*': 12}, borrow: false}\n- {name: b}\n");
  TenantUsage usage(tree);
  const TenantId a = tenant(tree, "a");
  EXPECT_EQ(usage.room(a, kH100).devices, 12);
  usage.apply({a, kA100, 0, 12});
  EXPECT_EQ(usage.room(a, kH100).devices, 8);
  EXPECT_EQ(usage.room(a, kA100).devices, 0);
  EXPECT_EQ(usage.room(a, kA100).bound, RoomBound::kGuarantee);
}

TEST(TenantRoom, WithoutBorrowingOrAGuaranteeIsWhatIsGuaranteedAbove) {
  const TenantTree tree = tree_of(
      "- {name: a, guarantee: {h100: 8}}\n- {name: a/x, borrow: false}\n- {name: a/y}\n"
      "- {name: b, borrow: false}\n");
  TenantUsage usage(tree);
  const TenantId x = tenant(tree, "a/x");
  EXPECT_EQ(usage.room(x, kH100).devices, 8);
  EXPECT_EQ(usage.room(x, kH100).tenant, tenant(tree, "a"));
  EXPECT_EQ(usage.room(x, kA100).devices, 0);
  EXPECT_EQ(usage.room(x, kA100).tenant, x);
  EXPECT_EQ(usage.room(tenant(tree, "b"), kH100).devices, 0);
  EXPECT_EQ(usage.room(tenant(tree, "a/y"), kH100).devices, kUnlimited);
  usage.apply({tenant(tree, "a/y"), kH100, 0, 10});
  EXPECT_EQ(usage.room(x, kH100).devices, 0);
}

TEST(TenantRight, IsTheOwnGuaranteeInsideThoseAbove) {
  Lab lab;
  EXPECT_TRUE(lab.usage.entitled(lab.vision, kH100, 32));
  EXPECT_FALSE(lab.usage.entitled(lab.vision, kH100, 33));
  EXPECT_FALSE(lab.usage.entitled(lab.vision, kA100, 1));
  lab.usage.apply({lab.scratch, kH100, 0, 40});
  EXPECT_TRUE(lab.usage.entitled(lab.vision, kH100, 24));
  EXPECT_FALSE(lab.usage.entitled(lab.vision, kH100, 25));
}

TEST(TenantRight, IsHonouredBySiblingsInsideAFullGroup) {
  Lab lab;
  lab.usage.apply({lab.scratch, kH100, 0, 64});
  EXPECT_FALSE(lab.usage.entitled(lab.vision, kH100, 32, lab.ops));
  EXPECT_TRUE(lab.usage.entitled(lab.vision, kH100, 32, lab.scratch));
  EXPECT_FALSE(lab.usage.entitled(lab.scratch, kH100, 1, lab.vision));
}

TEST(TenantRight, OfATenantWithoutAGuaranteeIsWhatIsLeftAbove) {
  Lab lab;
  EXPECT_TRUE(lab.usage.entitled(lab.scratch, kH100, 64));
  lab.usage.apply({lab.vision, kH100, 0, 32});
  EXPECT_TRUE(lab.usage.entitled(lab.scratch, kH100, 32));
  EXPECT_FALSE(lab.usage.entitled(lab.scratch, kH100, 33));
  EXPECT_FALSE(lab.usage.entitled(lab.guest, kH100, 1));
}

TEST(TenantRight, IsCoveredByTheFloorOfTheTypeOrOfAllTypes) {
  Lab lab;
  EXPECT_TRUE(lab.usage.entitled(lab.ops, kH100, 40));
  EXPECT_TRUE(lab.usage.entitled(lab.ops, kA100, 40));
  lab.usage.apply({lab.ops, kA100, 0, 40});
  EXPECT_TRUE(lab.usage.entitled(lab.ops, kH100, 16));
  EXPECT_FALSE(lab.usage.entitled(lab.ops, kH100, 17));
  EXPECT_FALSE(lab.usage.entitled(lab.ops, kA100, 1));
}

TEST(TenantReclaim, StopsAtEveryFloorOfTheVictimsPath) {
  Lab lab;
  lab.usage.apply({lab.vision, kH100, 0, 40});
  EXPECT_EQ(lab.usage.above_guarantee(lab.vision, kH100), 0);
  EXPECT_EQ(lab.usage.above_guarantee(lab.vision, kH100, lab.scratch), 8);
  lab.usage.apply({lab.scratch, kH100, 0, 30});
  EXPECT_EQ(lab.usage.above_guarantee(lab.vision, kH100), 6);
  EXPECT_EQ(lab.usage.above_guarantee(lab.scratch, kH100), 6);
  EXPECT_EQ(lab.usage.above_guarantee(lab.scratch, kH100, lab.vision), 30);
}

TEST(TenantReclaim, MayTakeAllOfATenantWithoutAGuarantee) {
  Lab lab;
  lab.usage.apply({lab.guest, kH100, 9, 7});
  EXPECT_EQ(lab.usage.above_guarantee(lab.guest, kH100), 7);
  EXPECT_EQ(lab.usage.above_guarantee(lab.guest, kA100), 0);
}

TEST(TenantReclaim, LeavesBothTheTypeAndTheTotal) {
  Lab lab;
  lab.usage.apply({lab.ops, kH100, 0, 30});
  EXPECT_EQ(lab.usage.above_guarantee(lab.ops, kH100), 0);
  lab.usage.apply({lab.ops, kA100, 0, 20});
  EXPECT_EQ(lab.usage.above_guarantee(lab.ops, kH100), 10);
  EXPECT_EQ(lab.usage.above_guarantee(lab.ops, kA100), 10);
  lab.usage.apply({lab.ops, kA100, 0, 20});
  EXPECT_EQ(lab.usage.above_guarantee(lab.ops, kH100), 14);
}

}  // namespace
}  // namespace orrery
