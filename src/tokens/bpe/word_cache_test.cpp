#include "tokens/bpe/word_cache.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "tokens/bpe/merge_tables.hpp"

namespace orrery {
namespace {

using Tokens = std::vector<std::int32_t>;

/// Tokens by which a word is known: its bytes behind its number.
Tokens tokens_of(int number) {
  Tokens tokens(static_cast<std::size_t>(number % 7) + 1, number);
  tokens.back() = -number;
  return tokens;
}

std::string word_of(int number) {
  std::string word = std::to_string(number);
  word.append(static_cast<std::size_t>(number % 17), 'x');
  return word;
}

void keep(const WordCache& cache, const std::string& word, const Tokens& tokens) {
  cache.keep(word, word_hash(word), tokens);
}

/// The tokens that a word is found with; none if it is not.
Tokens found(const WordCache& cache, const std::string& word) {
  Tokens tokens{7};
  const bool known = cache.append(word, word_hash(word), tokens);
  EXPECT_EQ(tokens.front(), 7) << "what was there is kept";
  EXPECT_EQ(known, tokens.size() > 1);
  return {tokens.begin() + 1, tokens.end()};
}

TEST(WordCache, FindsWordsOfEverySizeWithTheirTokens) {
  const WordCache cache(1'000);
  std::string word;
  for (int size = 1; size <= 56; ++size) {
    word += static_cast<char>('a' + size % 3);
    EXPECT_EQ(found(cache, word), Tokens{});
    keep(cache, word, tokens_of(size));
    EXPECT_EQ(found(cache, word), tokens_of(size)) << size;
    std::string other = word;
    other.back() = 'z';
    EXPECT_EQ(found(cache, other), Tokens{}) << size;
  }
}

TEST(WordCache, KeepsNeitherLongWordsNorManyTokens) {
  const WordCache cache(1'000);
  const std::string long_word(57, 'a');
  keep(cache, long_word, {1});
  EXPECT_EQ(found(cache, long_word), Tokens{});
  keep(cache, "a", Tokens(28, 1));
  EXPECT_EQ(found(cache, "a"), Tokens(28, 1));
  keep(cache, "b", Tokens(29, 1));
  EXPECT_EQ(found(cache, "b"), Tokens{});
}

TEST(WordCache, HasAFixedNumberOfPlacesAndGivesThemToLaterWords) {
  EXPECT_EQ(WordCache(1).places(), 64u);
  EXPECT_EQ(WordCache(1'000'000).places(), WordCache::kPlacesMax);
  const WordCache cache(1);
  int known = 0;
  for (int number = 0; number < 5'000; ++number) {
    keep(cache, word_of(number), tokens_of(number));
    EXPECT_EQ(found(cache, word_of(number)), tokens_of(number));
  }
  for (int number = 0; number < 5'000; ++number) {
    const Tokens tokens = found(cache, word_of(number));
    if (tokens.empty()) continue;
    EXPECT_EQ(tokens, tokens_of(number));
    ++known;
  }
  EXPECT_GT(known, 48);
  EXPECT_LE(known, 64);
}

TEST(WordCacheThreads, WhatIsFoundWhileOthersWriteIsWhole) {
  const WordCache cache(1);
  std::atomic<int> hits{0};
  std::atomic<int> wrong{0};
  const auto work = [&](int first) {
    for (int i = 0; i < 40'000; ++i) {
      const int number = (first + i * 7) % 150;
      const std::string word = word_of(number);
      Tokens tokens;
      if (cache.append(word, word_hash(word), tokens)) {
        ++hits;
        if (tokens != tokens_of(number)) ++wrong;
      } else {
        keep(cache, word, tokens_of(number));
      }
    }
  };
  {
    const std::jthread one(work, 0);
    const std::jthread two(work, 51);
    const std::jthread three(work, 103);
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(hits, 1'000);
}

}  // namespace
}  // namespace orrery
