#include "inference/engine/kv_block_pool.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <optional>
#include <vector>

namespace orrery {
namespace {

std::vector<std::int32_t> block_from(std::int32_t first) {
  std::vector<std::int32_t> tokens(KvBlockPool::kTokens);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

/// Takes a block, gives it the content, and leaves it unused.
KvBlockHash keep(KvBlockPool& pool, std::int32_t first) {
  const std::vector<std::int32_t> tokens = block_from(first);
  const auto block = pool.take();
  const KvBlockHash hash = pool.publish(*block, std::nullopt, tokens);
  pool.release(*block);
  return hash;
}

TEST(KvBlockPool, AnUnusedBlockIsFoundUntilItIsNeeded) {
  KvBlockPool pool(3);
  const KvBlockHash first = keep(pool, 0);
  const KvBlockHash second = keep(pool, 100);
  EXPECT_EQ(pool.free(), 3U);
  EXPECT_EQ(pool.known(), 2U);
  const auto found = pool.find(first, block_from(0));
  ASSERT_TRUE(found);
  EXPECT_EQ(pool.find(first, block_from(0)), found);  // shared
  EXPECT_EQ(pool.used(), 1U);
  pool.release(*found);
  pool.release(*found);
  // Now the second was unused longest: an empty block goes first, then it.
  EXPECT_TRUE(pool.take());
  EXPECT_TRUE(pool.find(second, block_from(100)));
  pool.release(*pool.find(second, block_from(100)));
  EXPECT_TRUE(pool.take());
  EXPECT_FALSE(pool.find(first, block_from(0)));
  EXPECT_FALSE(pool.take());
  EXPECT_TRUE(pool.consistent());
}

TEST(KvBlockPool, AHashStandsForAllTokensBeforeIt) {
  const std::vector<std::int32_t> tokens = block_from(0);
  const KvBlockHash begin = KvBlockPool::chain(std::nullopt, tokens);
  EXPECT_NE(KvBlockPool::chain(begin, tokens), begin);
  EXPECT_NE(KvBlockPool::chain(begin, tokens),
            KvBlockPool::chain(KvBlockPool::chain(std::nullopt, block_from(1)), tokens));
}

TEST(KvBlockPool, OtherTokensOfTheSameHashAreNotFound) {
  KvBlockPool pool(1);
  const KvBlockHash hash = keep(pool, 0);
  EXPECT_FALSE(pool.find(hash, block_from(1)));
  EXPECT_TRUE(pool.find(hash, block_from(0)));
}

TEST(KvBlockPool, OfTwoEqualBlocksOneIsKnown) {
  KvBlockPool pool(2);
  const std::vector<std::int32_t> tokens = block_from(0);
  const auto one = pool.take();
  const auto other = pool.take();
  const KvBlockHash hash = pool.publish(*one, std::nullopt, tokens);
  EXPECT_EQ(pool.publish(*other, std::nullopt, tokens), hash);
  pool.release(*other);
  EXPECT_EQ(pool.known(), 1U);
  EXPECT_EQ(pool.find(hash, tokens), one);
  EXPECT_TRUE(pool.consistent());
  EXPECT_EQ(pool.take_events().size(), 1U);
}

TEST(KvBlockPool, TellsOfBlocksThatBecomeKnownAndUnknown) {
  KvBlockPool pool(2);
  const std::vector<std::int32_t> begin = block_from(0);
  const std::vector<std::int32_t> rest = block_from(100);
  const auto one = pool.take();
  const auto other = pool.take();
  const KvBlockHash first = pool.publish(*one, std::nullopt, begin);
  const KvBlockHash second = pool.publish(*other, first, rest);
  std::vector<std::int32_t> both = begin;
  both.insert(both.end(), rest.begin(), rest.end());
  EXPECT_EQ(pool.take_events(),
            (std::vector<KvEvent>{KvBlocksStored{.hashes = {first.value, second.value},
                                                 .tokens = both,
                                                 .block_tokens = KvBlockPool::kTokens}}));
  pool.release(*other);
  pool.release(*one);
  const auto again = pool.take();
  const KvBlockHash third = pool.publish(*again, first, block_from(7));
  EXPECT_TRUE(pool.take());
  EXPECT_EQ(pool.take_events(),
            (std::vector<KvEvent>{KvBlocksRemoved{{second.value}},
                                  KvBlocksStored{.hashes = {third.value},
                                                 .parent = first.value,
                                                 .tokens = block_from(7),
                                                 .block_tokens = KvBlockPool::kTokens},
                                  KvBlocksRemoved{{first.value}}}));
  EXPECT_TRUE(pool.take_events().empty());
}

}  // namespace
}  // namespace orrery
