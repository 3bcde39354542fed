// serving/routing/prefix_index_test.cpp - the index in single cases, and beside a naive one over
// random runs.
#include "serving/routing/prefix_index.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <vector>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

using Chain = std::vector<std::uint64_t>;

std::vector<std::uint32_t> matches(const PrefixIndex& index, const Chain& chain,
                                   const std::vector<std::uint32_t>& slots) {
  std::vector<std::uint32_t> leading(slots.size(), 99);
  index.match(chain, slots, leading);
  return leading;
}

TEST(PrefixIndex, CountsTheLeadingBlocksOfEachReplica) {
  PrefixIndex index(1000);
  for (const std::uint32_t slot : {0U, 1U, 70U}) index.set_capacity(slot, 100);
  index.store(0, Chain{1, 2, 3});
  index.store(70, Chain{1, 2});
  index.store(1, Chain{2, 3});  // without the first block the others are of no use
  EXPECT_EQ(matches(index, {1, 2, 3, 4}, {70, 1, 0, 500}),
            (std::vector<std::uint32_t>{2, 0, 3, 0}));
  EXPECT_EQ(matches(index, {}, {0}), (std::vector<std::uint32_t>{0}));
  index.remove(0, 2);
  EXPECT_EQ(matches(index, {1, 2, 3}, {0, 70}), (std::vector<std::uint32_t>{1, 2}));
  index.clear(70);
  EXPECT_EQ(matches(index, {1, 2, 3}, {0, 70}), (std::vector<std::uint32_t>{1, 0}));
  EXPECT_EQ(index.blocks(), 4u);
}

TEST(PrefixIndex, TheEndOfAChainLeavesBeforeItsBeginning) {
  PrefixIndex index(1000);
  index.set_capacity(0, 4);
  index.store(0, Chain{1, 2, 3, 4});
  index.store(0, Chain{1, 9});
  EXPECT_EQ(matches(index, {1, 2, 3, 4}, {0}), (std::vector<std::uint32_t>{3}));
  // A chain that is longer than the cache leaves its beginning there.
  index.store(0, Chain{11, 12, 13, 14, 15, 16});
  EXPECT_EQ(matches(index, {11, 12, 13, 14, 15, 16}, {0}), (std::vector<std::uint32_t>{4}));
  index.set_capacity(0, 2);
  EXPECT_EQ(matches(index, {11, 12, 13}, {0}), (std::vector<std::uint32_t>{2}));
}

TEST(PrefixIndex, TheWholeIsBounded) {
  PrefixIndex index(100);
  for (std::uint32_t slot = 0; slot < 4; ++slot) index.set_capacity(slot, 1000);
  Chain chain(60);
  for (std::uint32_t slot = 0; slot < 4; ++slot) {
    std::iota(chain.begin(), chain.end(), std::uint64_t{1000} * slot);
    index.store(slot, chain);
    EXPECT_LE(index.blocks(), 100u);
  }
  // Each replica has its part: the largest gave way.
  for (std::uint32_t slot = 0; slot < 4; ++slot) {
    EXPECT_NEAR(static_cast<double>(index.blocks_of(slot)), 25, 16) << slot;
  }
  EXPECT_EQ(index.blocks(), 100u);
}

TEST(PrefixIndex, ABlockCostsAtMostTheBytesThatAreSaid) {
  PrefixIndex index(1 << 20);
  std::size_t most = 0;
  for (std::uint32_t slot = 0; slot < 8; ++slot) index.set_capacity(slot, 1 << 20);
  const std::size_t empty = index.bytes();
  Chain chain(4099);
  for (std::uint32_t slot = 0; slot < 8; ++slot) {
    std::iota(chain.begin(), chain.end(), std::uint64_t{1} << (20 + slot));
    index.store(slot, chain);
    most = std::max(most, (index.bytes() - empty) / index.blocks());
  }
  EXPECT_LE(most, 104u);
}

/// An index without any art: lists of blocks by use.
class NaiveIndex {
 public:
  explicit NaiveIndex(std::size_t capacity) : capacity_(capacity) {}

  void store(std::uint32_t slot, const Chain& chain) {
    std::deque<std::uint64_t>& blocks = blocks_[slot];
    for (std::size_t at = std::min(chain.size(), capacity_); at-- > 0;) {
      std::erase(blocks, chain[at]);
      blocks.push_front(chain[at]);
      if (blocks.size() > capacity_) blocks.pop_back();
    }
  }
  void remove(std::uint32_t slot, std::uint64_t block) { std::erase(blocks_[slot], block); }
  void forget_oldest(std::uint32_t slot, std::size_t count) {
    std::deque<std::uint64_t>& blocks = blocks_[slot];
    blocks.resize(blocks.size() - std::min(count, blocks.size()));
  }
  void clear(std::uint32_t slot) { blocks_[slot].clear(); }
  [[nodiscard]] std::uint32_t leading(std::uint32_t slot, const Chain& chain) const {
    const auto found = blocks_.find(slot);
    if (found == blocks_.end()) return 0;
    std::uint32_t count = 0;
    while (count < chain.size() && std::ranges::count(found->second, chain[count]) > 0) ++count;
    return count;
  }
  [[nodiscard]] std::size_t blocks() const {
    std::size_t sum = 0;
    for (const auto& [slot, blocks] : blocks_) sum += blocks.size();
    return sum;
  }

 private:
  std::size_t capacity_;
  std::map<std::uint32_t, std::deque<std::uint64_t>> blocks_;
};

/// A chain of a tree of prompts: each block's hash follows from those before it.
Chain random_chain(Rng& rng) {
  Chain chain(rng.below(12));
  std::uint64_t hash = 0;
  for (std::uint64_t& block : chain) block = hash = hash * 3 + 1 + rng.below(2);
  return chain;
}

TEST(PrefixIndex, AnswersAsANaiveOne) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Rng rng(seed);
    const std::size_t capacity = 1 + rng.below(40);
    PrefixIndex index(100'000);
    NaiveIndex naive(capacity);
    const std::vector<std::uint32_t> slots{3, 0, 63, 64, 200};
    for (const std::uint32_t slot : slots) index.set_capacity(slot, capacity);
    for (int step = 0; step < 600; ++step) {
      const std::uint32_t slot = slots[rng.below(slots.size())];
      const Chain chain = random_chain(rng);
      const std::uint64_t kind = rng.below(20);
      if (kind == 0) {
        index.clear(slot);
        naive.clear(slot);
      } else if (kind < 4 && !chain.empty()) {
        index.remove(slot, chain.back());
        naive.remove(slot, chain.back());
      } else if (kind == 4) {
        index.forget_oldest(slot, chain.size());
        naive.forget_oldest(slot, chain.size());
      } else {
        index.store(slot, chain);
        naive.store(slot, chain);
      }
      const Chain asked = random_chain(rng);
      const std::vector<std::uint32_t> leading = matches(index, asked, slots);
      for (std::size_t i = 0; i < slots.size(); ++i) {
        ASSERT_EQ(leading[i], naive.leading(slots[i], asked)) << "seed " << seed << ", " << step;
      }
      ASSERT_EQ(index.blocks(), naive.blocks()) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace orrery
