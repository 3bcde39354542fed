#include "gateway/caches/engine_blocks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/numbers/rng.hpp"
#include "serving/routing/prefix_index.hpp"

namespace orrery {
namespace {

std::vector<std::int32_t> tokens_from(std::int32_t first, std::size_t count) {
  std::vector<std::int32_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

TEST(EngineBlocks, ABlockIsThePartOfAChainThatItsTokensAre) {
  EngineBlocks blocks;
  const std::vector<std::int32_t> tokens = tokens_from(0, 96);
  const std::vector<std::uint64_t> chain = token_chain(tokens, 0);
  ASSERT_EQ(chain.size(), 6u);
  const std::span all(tokens);
  const auto part = [&](std::size_t begin, std::size_t end) {
    return std::vector(chain.begin() + static_cast<std::ptrdiff_t>(begin),
                       chain.begin() + static_cast<std::ptrdiff_t>(end));
  };
  const auto of = [&](std::size_t begin, std::size_t end) {
    const auto each = all.subspan(begin, end - begin);
    return std::vector<std::int32_t>(each.begin(), each.end());
  };
  EXPECT_EQ(blocks.store({{7, 8}, {}, of(0, 64), 32}), part(0, 4));
  EXPECT_EQ(blocks.store({{9}, 8, of(64, 96), 32}), part(4, 6));
  EXPECT_TRUE(blocks.store({{11}, 10, of(0, 32), 32}).empty()) << "after an unknown block";
  EXPECT_EQ(blocks.size(), 6u);
  const auto removed = blocks.remove(8);
  EXPECT_EQ(std::vector(removed.begin(), removed.end()), part(2, 4));
  EXPECT_TRUE(blocks.remove(8).empty());
  EXPECT_TRUE(blocks.remove(10).empty());
  EXPECT_EQ(blocks.store({{8}, 7, of(32, 64), 32}), part(2, 4));
  EXPECT_EQ(blocks.size(), 6u);
  blocks.clear();
  EXPECT_EQ(blocks.size(), 0u);
  EXPECT_TRUE(blocks.store({{9}, 8, of(64, 96), 32}).empty());
}

TEST(EngineBlocks, ABlockIsKnownUntilItsLastCopyIsRemoved) {
  EngineBlocks blocks;
  const KvBlocksStored stored{{7}, {}, tokens_from(0, 16), 16};
  EXPECT_EQ(blocks.store(stored).size(), 1u);
  EXPECT_EQ(blocks.store(stored).size(), 1u);
  EXPECT_EQ(blocks.size(), 1u);
  EXPECT_TRUE(blocks.remove(7).empty());
  EXPECT_EQ(blocks.remove(7).size(), 1u);
  EXPECT_EQ(blocks.size(), 0u);
}

/// An engine that keeps texts of a few blocks under names of its own, and forgets blocks at random.
class RandomEngine {
 public:
  explicit RandomEngine(std::uint64_t seed) : rng_(seed) {}

  /// A text: of few tokens, so that many begin alike.
  std::vector<std::int32_t> draw_text() {
    std::vector<std::int32_t> text;
    for (std::uint64_t left = 1 + rng_.below(5); left > 0; --left) {
      const std::vector<std::int32_t> block =
          tokens_from(static_cast<std::int32_t>(rng_.below(3)), kTokens);
      text.insert(text.end(), block.begin(), block.end());
    }
    return text;
  }
  /// Stores the blocks of a text that are not there; nothing: all are.
  std::vector<KvEvent> keep(std::span<const std::int32_t> text) {
    std::vector<KvEvent> events;
    std::optional<std::uint64_t> parent;
    for (std::size_t size = kTokens; size <= text.size(); size += kTokens) {
      const std::vector<std::int32_t> begin(text.begin(),
                                            text.begin() + static_cast<std::ptrdiff_t>(size));
      const auto [found, added] = names_.try_emplace(begin, next_name_);
      if (added) {
        next_name_ += 0x9E37'79B9U;
        const auto last = text.subspan(size - kTokens, kTokens);
        events.emplace_back(
            KvBlocksStored{{found->second}, parent, {last.begin(), last.end()}, kTokens});
      }
      parent = found->second;
    }
    return events;
  }
  /// Removes a block that no other follows.
  std::vector<KvEvent> drop() {
    if (names_.empty()) return {};
    auto at = std::next(names_.begin(), static_cast<std::ptrdiff_t>(rng_.below(names_.size())));
    for (auto next = std::next(at); next != names_.end() && follows(next->first, at->first);
         next = std::next(at)) {
      at = next;
    }
    const std::uint64_t name = at->second;
    names_.erase(at);
    return {KvBlocksRemoved{{name}}};
  }
  /// How many leading tokens of a text are kept.
  [[nodiscard]] std::size_t kept(std::span<const std::int32_t> text) const {
    std::size_t size = 0;
    while (size + kTokens <= text.size() &&
           names_.contains(
               {text.begin(), text.begin() + static_cast<std::ptrdiff_t>(size + kTokens)})) {
      size += kTokens;
    }
    return size;
  }
  [[nodiscard]] std::size_t blocks() const { return names_.size(); }
  [[nodiscard]] std::uint64_t draw(std::uint64_t below) { return rng_.below(below); }

  static constexpr std::uint32_t kTokens = 32;

 private:
  static bool follows(const std::vector<std::int32_t>& text,
                      const std::vector<std::int32_t>& begin) {
    return text.size() > begin.size() && std::equal(begin.begin(), begin.end(), text.begin());
  }

  Rng rng_;
  std::map<std::vector<std::int32_t>, std::uint64_t> names_;  ///< of beginnings of texts
  std::uint64_t next_name_ = 1;
};

TEST(EngineBlocks, TheIndexHasWhatTheEngineHasAfterAnyEvents) {
  constexpr std::uint32_t kSlot = 3;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    RandomEngine engine(seed);
    EngineBlocks blocks;
    PrefixIndex index(100'000);
    index.set_capacity(kSlot, 10'000);
    for (int step = 0; step < 500; ++step) {
      const std::vector<KvEvent> events =
          engine.draw(5) < 2 ? engine.drop() : engine.keep(engine.draw_text());
      for (const KvEvent& each : events) {
        if (const auto* stored = std::get_if<KvBlocksStored>(&each)) {
          index.store(kSlot, blocks.store(*stored));
        } else {
          for (const std::uint64_t name : std::get<KvBlocksRemoved>(each).hashes) {
            for (const std::uint64_t block : blocks.remove(name)) index.remove(kSlot, block);
          }
        }
      }
      const std::vector<std::int32_t> text = engine.draw_text();
      std::uint32_t leading = 0;
      index.match(token_chain(text, 0), {&kSlot, 1}, {&leading, 1});
      ASSERT_EQ(leading * kChainTokens, engine.kept(text)) << "seed " << seed << " step " << step;
      ASSERT_EQ(index.blocks_of(kSlot), blocks.size());
      ASSERT_EQ(blocks.size(), engine.blocks() * RandomEngine::kTokens / kChainTokens);
    }
  }
}

}  // namespace
}  // namespace orrery
