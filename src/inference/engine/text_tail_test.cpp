#include "inference/engine/text_tail.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

TEST(TextTail, HoldsBackCharactersThatAreNotComplete) {
  TextTail tail({});
  EXPECT_EQ(tail.take("a\xC3"), "a");
  EXPECT_EQ(tail.take("\xA9"), "\xC3\xA9");
  EXPECT_EQ(tail.take("\xF0\x9F\x98"), "");
  EXPECT_EQ(tail.take("\x80!"), "\xF0\x9F\x98\x80!");
  EXPECT_EQ(tail.take("\xE2\x82"), "");
  EXPECT_EQ(tail.finish(), "\xEF\xBF\xBD");
}

TEST(TextTail, BytesThatAreNoTextBecomeReplacementCharacters) {
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(valid_utf8("a\xFF\xC0z"), "a" + bad + bad + "z");
  // A cut character counts once, an overlong form and a surrogate once for each byte.
  EXPECT_EQ(valid_utf8("\xE2\x82z"), bad + "z");
  EXPECT_EQ(valid_utf8("\xE0\x80"), bad + bad);
  EXPECT_EQ(valid_utf8("\xED\xA0\x80"), bad + bad + bad);
  EXPECT_EQ(valid_utf8(std::string("\0", 1)), std::string("\0", 1));
}

TEST(TextTail, HoldsBackWhatMayBeginAStopString) {
  TextTail tail({"", "END", "\n\n"});
  EXPECT_EQ(tail.take("one E"), "one ");
  EXPECT_EQ(tail.take("N"), "");
  EXPECT_EQ(tail.take("T\n"), "ENT");
  EXPECT_EQ(tail.take("x"), "\nx");
  EXPECT_FALSE(tail.stopped());
  EXPECT_EQ(tail.take("yEN"), "y");
  EXPECT_EQ(tail.take("Dz"), "");
  EXPECT_TRUE(tail.stopped());
  EXPECT_EQ(tail.take("more"), "");
  EXPECT_EQ(tail.finish(), "");
}

TEST(TextTail, TheBordersOfTokensDoNotMatter) {
  Rng rng(5);
  const std::string letters = "ab\xC3\xA9\xF0\x9F\x98\x80\xFF";
  for (int round = 0; round < 2'000; ++round) {
    std::string bytes;
    const std::size_t size = rng.below(30);
    for (std::size_t i = 0; i < size; ++i) bytes += letters[rng.below(letters.size())];
    const std::vector<std::string> stops{"aba", "bb\xC3\xA9", "\xC3\xA9"};
    std::size_t end = bytes.size();
    for (const std::string& stop : stops) end = std::min(end, bytes.find(stop));
    TextTail tail(stops);
    std::string text;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t step = std::min<std::size_t>(1 + rng.below(4), bytes.size() - at);
      text += tail.take(std::string_view(bytes).substr(at, step));
      at += step;
    }
    const bool stopped = tail.stopped();
    text += tail.finish();
    ASSERT_EQ(stopped, end < bytes.size());
    ASSERT_EQ(text, valid_utf8(bytes.substr(0, end)));
  }
}

}  // namespace
}  // namespace orrery
