#include "runtime/training/gradient_check.hpp"

#include <gtest/gtest.h>

#include <set>

namespace orrery {
namespace {

TEST(GradientCheck, EveryShardAndEveryPairOfRanksHasItsTurn) {
  const std::vector<LeafRange> owned = share_leaves(4, 3);
  std::set<std::uint32_t> shards;
  std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;
  for (std::uint64_t step = 0; step < 100; ++step) {
    const auto checked = checked_shard(step, 5, owned);
    ASSERT_EQ(checked.has_value(), step % 5 == 4);
    if (!checked) continue;
    ASSERT_NE(checked->owner, checked->other);
    ASSERT_LE(owned[checked->owner].begin, checked->shard);
    ASSERT_GT(owned[checked->owner].end, checked->shard);
    shards.insert(checked->shard);
    pairs.insert({checked->owner, checked->other});
  }
  EXPECT_EQ(shards.size(), 4u);
  EXPECT_EQ(pairs.size(), 6u);
  EXPECT_EQ(checked_shard(4, 0, owned), std::nullopt);
  EXPECT_EQ(checked_shard(4, 5, share_leaves(4, 1)), std::nullopt);
}

TEST(GradientCheck, WhoeverSaysSomethingElseThanMostIsWrong) {
  const CheckedShard checked{.shard = 2, .owner = 2, .other = 0};
  const std::vector<GradientOpinion> good{{7, 5}, {7, 0}, {7, 5}, {7, 0}};
  const std::vector<GradientOpinion> again{{7, 5}, {7, 5}, {7, 5}, {7, 5}};
  EXPECT_TRUE(agree(good, checked));
  std::vector<GradientOpinion> first = good;
  first[2].shard = 4;  // a bit was flipped, once
  EXPECT_FALSE(agree(first, checked));
  EXPECT_EQ(wrong_ranks(first, again, checked), (std::vector{2u}));
  first = good;
  first[0].shard = 4;  // the rank that recomputes is wrong
  EXPECT_EQ(wrong_ranks(first, again, checked), (std::vector{0u}));
  EXPECT_TRUE(comparable(first));
  first[3].machine = 1;
  EXPECT_FALSE(comparable(first));
  first = good;
  first[3].sum = 8;
  EXPECT_FALSE(agree(first, checked));
  EXPECT_EQ(wrong_ranks(first, again, checked), (std::vector{3u}));
}

TEST(GradientCheck, OfTwoOnlyWhoContradictsItselfCanBeNamed) {
  const CheckedShard checked{.shard = 0, .owner = 0, .other = 1};
  const std::vector<GradientOpinion> first{{7, 4}, {7, 5}};
  EXPECT_EQ(wrong_ranks(first, std::vector<GradientOpinion>{{7, 5}, {7, 5}}, checked),
            (std::vector{0u}));
  EXPECT_EQ(wrong_ranks(first, std::vector<GradientOpinion>{{7, 4}, {7, 5}}, checked),
            std::nullopt);
}

}  // namespace
}  // namespace orrery
