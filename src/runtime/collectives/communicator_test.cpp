#include "runtime/collectives/communicator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/numbers/rng.hpp"
#include "runtime/elastic/group_of_threads_test.hpp"

namespace orrery {
namespace {

std::vector<float> numbers_of(std::uint64_t seed, std::size_t count) {
  Rng rng(seed);
  std::vector<float> numbers(count);
  for (float& each : numbers) each = static_cast<float>(rng.uniform() - 0.5);
  return numbers;
}

std::span<std::byte> raw(std::vector<float>& numbers) {
  return std::as_writable_bytes(std::span(numbers));
}

/// The reference sum by the tree, without blocks or ranks.
float tree_sum(const std::vector<std::vector<float>>& leaves, const LeafRange& node,
               std::size_t at) {
  if (node.size() == 1) return leaves[node.begin][at];
  const std::uint32_t split = split_of(node);
  return tree_sum(leaves, {node.begin, split}, at) + tree_sum(leaves, {split, node.end}, at);
}

/// World size, and whether memory is shared.
class CollectiveThreads
    : public testing::TestWithParam<std::tuple<std::uint32_t, TestGang::Memory>> {
 protected:
  [[nodiscard]] static std::uint32_t world() { return std::get<0>(GetParam()); }
  TestGang gang_{world(), std::get<1>(GetParam())};
};

TEST_P(CollectiveThreads, AllReduceHasTheBitsOfTheTreeInAndOutsideOfTheWorkspace) {
  for (const std::size_t count : {0u, 1u, 100u, 3000u, 40'000u}) {
    std::vector<std::vector<float>> leaves;
    leaves.reserve(world());
    for (std::uint32_t rank = 0; rank < world(); ++rank) leaves.push_back(numbers_of(rank, count));
    gang_.run([&](std::uint32_t rank) {
      const auto group = gang_.found(rank);
      ASSERT_NE(group, nullptr);
      ASSERT_EQ(group->shares_memory(),
                std::get<1>(GetParam()) == TestGang::Memory::kShared && world() > 1);
      std::vector<float> outside = leaves[rank];
      ASSERT_TRUE(group->communicator().all_reduce(Elements(outside)));
      auto* inside = reinterpret_cast<float*>(group->workspace().data());
      std::copy(leaves[rank].begin(), leaves[rank].end(), inside);
      ASSERT_TRUE(group->communicator().all_reduce(Elements(std::span(inside, count))));
      for (std::size_t i = 0; i < count; ++i) {
        const float sum = tree_sum(leaves, {0, world()}, i);
        ASSERT_EQ(outside[i], sum);
        ASSERT_EQ(inside[i], sum);
      }
      group->farewell();
    });
    gang_ = TestGang(world(), std::get<1>(GetParam()));
  }
}

TEST_P(CollectiveThreads, EveryOtherOperationMovesWhatItSays) {
  gang_.run([&](std::uint32_t rank) {
    const auto group = gang_.found(rank);
    ASSERT_NE(group, nullptr);
    Communicator& ranks = group->communicator();
    for (const std::size_t each : {1u, 700u, 9000u}) {
      const std::uint32_t root = world() - 1;
      std::vector<float> mine(each, static_cast<float>(rank));
      std::vector<float> all(each * world(), -1);
      ASSERT_TRUE(ranks.all_gather(raw(mine), raw(all)));
      for (std::size_t i = 0; i < all.size(); ++i) {
        const std::size_t from = i / each;
        ASSERT_EQ(all[i], static_cast<float>(from));
      }
      std::vector<float> gathered(rank == root ? all.size() : 0);
      ASSERT_TRUE(ranks.gather(raw(mine), raw(gathered), root));
      if (rank == root) ASSERT_EQ(gathered, all);
      std::vector<float> part(each, -1);
      ASSERT_TRUE(ranks.scatter(raw(all), raw(part), root));
      ASSERT_EQ(part, mine);
      ASSERT_TRUE(ranks.reduce_scatter(Elements(all), raw(part)));
      ASSERT_EQ(part[each - 1], static_cast<float>(std::size_t{rank} * world()));
      std::vector<float> told(each, rank == root ? 7.0f : 0.0f);
      ASSERT_TRUE(ranks.broadcast(raw(told), root));
      ASSERT_EQ(told, std::vector<float>(each, 7));
      std::vector<float> to_each(all.size());
      for (std::size_t i = 0; i < all.size(); ++i) {
        const std::size_t to = i / each;
        to_each[i] = static_cast<float>(std::size_t{rank} * 100 + to);
      }
      ASSERT_TRUE(ranks.all_to_all(raw(to_each), raw(all)));
      for (std::size_t i = 0; i < all.size(); ++i) {
        const std::size_t from = i / each;
        ASSERT_EQ(all[i], static_cast<float>(from * 100 + rank));
      }
      ASSERT_TRUE(ranks.barrier());
      if (world() < 2) continue;
      if (rank == 0) ASSERT_TRUE(ranks.send(raw(mine), 1));
      if (rank == 1) ASSERT_TRUE(ranks.receive(raw(part), 0));
      if (rank == 1) ASSERT_EQ(part, std::vector<float>(each, 0));
    }
    group->farewell();
  });
}

TEST_P(CollectiveThreads, ManyRoundsStayInStep) {
  gang_.run([&](std::uint32_t rank) {
    const auto group = gang_.found(rank);
    ASSERT_NE(group, nullptr);
    for (std::uint32_t round = 0; round < 300; ++round) {
      std::vector<std::int32_t> values(round % 7 * 150 + 1,
                                       static_cast<std::int32_t>(round + rank));
      const Elements in_out(std::as_writable_bytes(std::span(values)), SumType::kInt32);
      ASSERT_TRUE(group->communicator().all_reduce(in_out));
      const std::uint32_t sum = world() * round + world() * (world() - 1) / 2;
      ASSERT_EQ(values.back(), static_cast<std::int32_t>(sum));
    }
    group->farewell();
  });
}

TEST_P(CollectiveThreads, GroupsOfSomeRanksWorkBesideEachOtherAndTheWhole) {
  gang_.run([&](std::uint32_t rank) {
    const auto group = gang_.found(rank);
    ASSERT_NE(group, nullptr);
    std::vector<std::uint32_t> odd_or_even;
    std::uint32_t sum = 0;
    for (std::uint32_t each = rank % 2; each < world(); each += 2) {
      odd_or_even.push_back(each);
      sum += each;
    }
    Communicator some = group->among(odd_or_even);
    ASSERT_EQ(some.size(), odd_or_even.size());
    ASSERT_EQ(some.rank(), rank / 2);
    for (std::uint32_t round = 0; round < 50; ++round) {
      std::vector<std::int32_t> values(1 + round * 200, static_cast<std::int32_t>(rank));
      const Elements in_out(std::as_writable_bytes(std::span(values)), SumType::kInt32);
      ASSERT_TRUE(some.all_reduce(in_out));
      ASSERT_EQ(values.back(), static_cast<std::int32_t>(sum));
      // The even ones have more to do than the odd ones.
      if (rank % 2 == 0) ASSERT_TRUE(some.barrier());
      std::vector<std::int32_t> ones(300, 1);
      const Elements all(std::as_writable_bytes(std::span(ones)), SumType::kInt32);
      ASSERT_TRUE(group->communicator().all_reduce(all));
      ASSERT_EQ(ones[299], static_cast<std::int32_t>(world()));
    }
    group->farewell();
  });
}

TEST_P(CollectiveThreads, TheHalvesOfAnAllReduceLeaveEachItsOwnPartBetween) {
  constexpr std::size_t kCount = 5000;
  std::vector<std::vector<float>> leaves;
  leaves.reserve(world());
  for (std::uint32_t rank = 0; rank < world(); ++rank) leaves.push_back(numbers_of(rank, kCount));
  // The parts are uneven, and one is empty.
  std::vector<RankPart> parts(world());
  for (std::uint32_t rank = 0; rank + 1 < world(); ++rank) parts[rank] = {rank * 640, 640};
  if (world() > 2) parts[1].size = 0;
  const std::size_t rest = std::size_t{world() - 1} * 640;
  parts.back() = {rest, kCount * sizeof(float) - rest};
  gang_.run([&](std::uint32_t rank) {
    const auto group = gang_.found(rank);
    ASSERT_NE(group, nullptr);
    std::vector<LeafRange> owned;
    for (std::uint32_t each = 0; each < world(); ++each) owned.push_back({each, each + 1});
    std::vector<float> mine = leaves[rank];
    ASSERT_TRUE(group->communicator().reduce_scatter_shards(Elements(mine), owned, parts));
    const auto in = [&](std::size_t i, std::uint32_t of) {
      const std::size_t byte = i * sizeof(float);
      return byte >= parts[of].begin && byte < parts[of].begin + parts[of].size;
    };
    for (std::size_t i = 0; i < kCount; ++i) {
      ASSERT_EQ(mine[i], in(i, rank) ? tree_sum(leaves, {0, world()}, i) : leaves[rank][i]);
    }
    ASSERT_TRUE(group->communicator().all_gather_parts(raw(mine), parts));
    for (std::size_t i = 0; i < kCount; ++i) {
      const bool gap = world() > 2 && i >= 160 && i < 320;
      if (!gap) ASSERT_EQ(mine[i], tree_sum(leaves, {0, world()}, i));
    }
    group->farewell();
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, CollectiveThreads,
                         testing::Combine(testing::Values(1, 2, 3, 5),
                                          testing::Values(TestGang::Memory::kOwn,
                                                          TestGang::Memory::kShared)));

TEST(ReductionTree, SumsOfNodesGiveTheBitsOfTheSumOfLeaves) {
  for (std::uint32_t leaves = 1; leaves <= 9; ++leaves) {
    std::vector<std::vector<float>> values;
    values.reserve(leaves);
    for (std::uint32_t leaf = 0; leaf < leaves; ++leaf) values.push_back(numbers_of(leaf, 3000));
    for (std::uint32_t members = 1; members <= leaves; ++members) {
      const std::vector<LeafRange> shares = share_leaves(leaves, members);
      ASSERT_EQ(shares.front().begin, 0u);
      ASSERT_EQ(shares.back().end, leaves);
      std::vector<std::vector<float>> sums;
      for (const LeafRange& share : shares) {
        std::vector<float> sum(3000);
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = tree_sum(values, share, i);
        sums.push_back(std::move(sum));
      }
      std::vector<NodeSum> sources;
      for (std::size_t i = 0; i < shares.size(); ++i) {
        if (i > 0) ASSERT_EQ(shares[i].begin, shares[i - 1].end);
        sources.push_back({shares[i], std::as_bytes(std::span(sums[i]))});
      }
      std::vector<float> out(3000);
      sum_by_tree(SumType::kFloat32, sources, raw(out));
      for (std::size_t i = 0; i < out.size(); ++i) {
        ASSERT_EQ(out[i], tree_sum(values, {0, leaves}, i)) << leaves << " " << members;
      }
    }
  }
}

TEST(ReductionTree, Bfloat16IsRoundedOnceToTheNearestEven) {
  // 1 + 2^-8 lies between two bfloat16 values; 1 plus three times 2^-8 does not.
  std::vector<std::uint16_t> one{0x3f80};
  std::vector<std::uint16_t> eps{0x3b80};
  const auto view = [](const std::vector<std::uint16_t>& v) { return std::as_bytes(std::span(v)); };
  std::vector<std::uint16_t> out(1);
  const std::vector<NodeSum> two{{{0, 1}, view(one)}, {{1, 2}, view(eps)}};
  sum_by_tree(SumType::kBfloat16, two, std::as_writable_bytes(std::span(out)));
  EXPECT_EQ(out[0], 0x3f80);
  const std::vector<NodeSum> four{
      {{0, 1}, view(one)}, {{1, 2}, view(eps)}, {{2, 3}, view(eps)}, {{3, 4}, view(eps)}};
  sum_by_tree(SumType::kBfloat16, four, std::as_writable_bytes(std::span(out)));
  EXPECT_EQ(out[0], 0x3f82);
}

TEST(ReductionTree, MembersOwnAsEvenPartsAsNodesAllow) {
  EXPECT_EQ(share_leaves(4, 3), (std::vector<LeafRange>{{0, 1}, {1, 2}, {2, 4}}));
  EXPECT_EQ(share_leaves(8, 5), (std::vector<LeafRange>{{0, 1}, {1, 2}, {2, 4}, {4, 6}, {6, 8}}));
  EXPECT_EQ(share_leaves(6, 6).size(), 6u);
}

}  // namespace
}  // namespace orrery
