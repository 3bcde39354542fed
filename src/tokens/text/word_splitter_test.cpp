#include "tokens/text/word_splitter.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <ostream>
#include <string>
#include <vector>

#include "base/numbers/rng.hpp"
#include "tokens/text/text_pattern.hpp"

namespace orrery {
namespace {

constexpr const char* kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char* kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2 = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
                               R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kMarks =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N})"
    R"(| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kO200k =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr const char* kDeepseek =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kNumbers = R"(\p{N}{1,3})";
constexpr const char* kHanAndKana = "[一-龥\u3040-ゟ゠-ヿ]+";

class WordPatternTest : public testing::TestWithParam<const char*> {
 public:
  /// Expects the words of a text to be the matches of the pattern and what lies between them.
  void expect_matches(const std::string& text) const {
    std::vector<TextSpan> words;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = splitter_.word_end(text, at);
      ASSERT_GT(end, at);
      words.push_back({at, end});
      at = end;
    }
    std::vector<TextSpan> expected;
    std::size_t done = 0;
    for (const TextSpan match : pattern_.find_all(text)) {
      if (done < match.begin) expected.push_back({done, match.begin});
      ASSERT_TRUE(done == match.begin || !splitter_.covers()) << text;
      expected.push_back(match);
      done = match.end;
    }
    if (done < text.size()) expected.push_back({done, text.size()});
    for (std::size_t i = 0; i < std::min(words.size(), expected.size()); ++i) {
      ASSERT_EQ(words[i], expected[i]) << "at byte " << expected[i].begin << " of " << text;
    }
    ASSERT_EQ(words.size(), expected.size()) << text;
  }

 private:
  TextPattern pattern_ = TextPattern::of_json(GetParam());
  WordSplitter splitter_ = WordSplitter::of_pattern(GetParam()).value();
};

TEST_P(WordPatternTest, WordsOfRandomTextsAreTheMatchesOfThePattern) {
  const std::array<std::string, 39> pieces = {
      "a",      "B",      "word",   "Word", "WORD", "'s",   "'S", "'ll",  "'rE", "'\xc5\xbf",
      "'",      " ",      "  ",     "\t",   "\n",   "\r\n", "\r", "1",    "23",  "4567",
      ".",      "/",      "//",     "_",    "ß",    "Ω",    "ω",  "ǅ",    "ʰ",   "日",
      "\u0301", "\u00A0", "\u2028", "½",    "😀",   "ख",    "ア", "\x01", "$"};
  Rng rng(1);
  for (int round = 0; round < 3'000; ++round) {
    std::string text;
    const std::uint64_t count = rng.below(12);
    for (std::uint64_t i = 0; i <= count; ++i) text += pieces[rng.below(pieces.size())];
    expect_matches(text);
    if (HasFatalFailure()) return;
  }
}

// Most characters beyond the second plane are Han or belong to no script.
TEST_P(WordPatternTest, EveryCharacterHasTheClassOfThePattern) {
  std::string text;
  for (char32_t value = 0; value < 0x110000; value += value < 0x20000 ? 1 : 61) {
    if (value >= 0xD800 && value < 0xE000) continue;
    text += 'x';
    append_code_point(value, text);
    text += "Y.";
    append_code_point(value, text);
    if (text.size() < 4'096) continue;
    expect_matches(text);
    if (HasFatalFailure()) return;
    text.clear();
  }
  expect_matches(text);
}

INSTANTIATE_TEST_SUITE_P(Known, WordPatternTest,
                         testing::Values(kGpt2, kLlama3, kQwen2, kMarks, kO200k, kDeepseek,
                                         kNumbers, kHanAndKana));

TEST(WordSplitterTest, KnowsNoOtherPattern) {
  EXPECT_FALSE(WordSplitter::of_pattern(R"(\p{L}+|\P{L}+)").has_value());
  EXPECT_FALSE(WordSplitter::of_pattern("").has_value());
}

TEST(WordSplitterTest, KnowsAPatternInEachSpelling) {
  std::string spelt = kDeepseek;
  spelt.insert(spelt.find('"'), "\\");
  for (std::size_t at = 0; (at = spelt.find(R"(\r\n)", at)) != std::string::npos; ++at) {
    spelt.replace(at, 4, "\r\n");
  }
  ASSERT_NE(spelt, kDeepseek);
  EXPECT_TRUE(WordSplitter::of_pattern(spelt).has_value());
  EXPECT_FALSE(WordSplitter::of_pattern(spelt + "\\").has_value());
}

}  // namespace
}  // namespace orrery
