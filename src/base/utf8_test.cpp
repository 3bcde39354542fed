// base/utf8_test.cpp - where text stops being UTF-8, where in it we are, and how it is shown.
#include "base/utf8.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/rng.hpp"

namespace orrery {
namespace {

using namespace std::string_literals;

constexpr std::size_t kValid = std::string_view::npos;

TEST(Utf8, AcceptsEveryLengthAtBothEndsOfItsRange) {
  for (const std::string& text : {""s, "\x01"s, "\x7F"s, "\xC2\x80"s, "\xDF\xBF"s, "\xE0\xA0\x80"s,
                                  "\xED\x9F\xBF"s, "\xEE\x80\x80"s, "\xEF\xBF\xBF"s,
                                  "\xF0\x90\x80\x80"s, "\xF4\x8F\xBF\xBF"s, "Zürich, 東京, 😀"s}) {
    EXPECT_EQ(first_invalid_utf8(text), kValid) << text;
  }
}

TEST(Utf8, FindsTheFirstByteThatIsNotText) {
  EXPECT_EQ(first_invalid_utf8("abc\xFF"), 3u);
  EXPECT_EQ(first_invalid_utf8("ab\0c"s), 2u);
  EXPECT_EQ(first_invalid_utf8("a\x80"), 1u);
  EXPECT_EQ(first_invalid_utf8("ü\xC3"), 2u);
}

TEST(Utf8, RefusesOverlongFormsSurrogatesAndWhatLiesBeyondUnicode) {
  for (const std::string& text :
       {"\xC0\x80"s, "\xC1\xBF"s, "\xE0\x9F\xBF"s, "\xF0\x8F\xBF\xBF"s, "\xED\xA0\x80"s,
        "\xED\xBF\xBF"s, "\xF4\x90\x80\x80"s, "\xF5\x80\x80\x80"s}) {
    EXPECT_EQ(first_invalid_utf8(text), 0u);
  }
}

TEST(Utf8, RefusesCharactersCutShort) {
  for (const std::string& text : {"\xE2\x82"s, "\xF0\x9F\x98"s, "\xE2\x82x"s, "\xF0\x9Fxx"s}) {
    EXPECT_EQ(first_invalid_utf8(text), 0u);
  }
}

TEST(Utf8, CountsLinesAndColumnsInCodePoints) {
  const std::string text = "ab\nüö=\nx";
  EXPECT_EQ(place_of(text, 0).line, 1);
  EXPECT_EQ(place_of(text, 0).column, 1);
  EXPECT_EQ(place_of(text, 3).line, 2);
  EXPECT_EQ(place_of(text, 3).column, 1);
  EXPECT_EQ(place_of(text, text.find('=')).column, 3);
  EXPECT_EQ(place_of(text, text.size()).line, 3);
  EXPECT_EQ(place_of(text, text.size() + 100).line, 3);
}

TEST(Utf8, ShowsControlCharactersAndStrayBytesAsQuestionMarks) {
  EXPECT_EQ(printable("a\tb\nc\x7F", 60), "a?b?c?");
  EXPECT_EQ(printable("ok\xFF\xC3", 60), "ok??");
  EXPECT_EQ(printable("Zürich", 60), "Zürich");
}

TEST(Utf8, CutsBetweenCodePoints) {
  EXPECT_EQ(printable("Zürich", 6), "Züric...");
  EXPECT_EQ(printable("Zürich", 2), "Z...");
  EXPECT_EQ(printable("Zürich", 7), "Zürich");
}

TEST(Utf8, ShowsNoMoreThanAskedOfAnyBytes) {
  Rng rng = Rng::stream(1, "utf8");
  for (int i = 0; i < 20'000; ++i) {
    std::string text(rng.below(40), '\0');
    for (char& c : text) c = static_cast<char>(rng.below(256));
    const std::size_t most = rng.below(30);
    const std::string shown = printable(text, most);
    ASSERT_EQ(first_invalid_utf8(shown), kValid);
    ASSERT_LE(shown.size(), most + 3);
  }
}

}  // namespace
}  // namespace orrery
