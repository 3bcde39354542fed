// base/text/utf8_test.cpp - where text stops being UTF-8, where in it we are, and how it is shown.
#include "base/text/utf8.hpp"
#include "base/text/terminal_text.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/numbers/rng.hpp"

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

TEST(Utf8, NothingThatATerminalObeysIsShownAsItIs) {
  const std::string hostile =
      "a\x1b]52;c;cm0gLXJm\x07\x1b[31m\xC2\x9B"
      "31m\u202Etxt\u2066\u200F\u2028\x7F\xFF\t\r\n";
  EXPECT_EQ(
      terminal_text(hostile, Newlines::kEscaped),
      "a\\x1b]52;c;cm0gLXJm\\x07\\x1b[31m\\u009b31m\\u202etxt\\u2066\\u200f\\u2028\\x7f\\xff\\t"
      "\\r\\n");
  EXPECT_EQ(terminal_text("one\ntwo", Newlines::kKept), "one\ntwo");
  EXPECT_EQ(terminal_text(std::string("\0", 1), Newlines::kKept), "\\x00");
  EXPECT_EQ(terminal_text("Zürich 京都 😀", Newlines::kKept), "Zürich 京都 😀");
  EXPECT_EQ(terminal_json("{\"a\": \"\u202E\xC2\x9B\x7F\"}\n"),
            "{\"a\": \"\\u202e\\u009b\\u007f\"}\n");
  EXPECT_EQ(printable("a\xC2\x9B\u202Eb", 60), "a??b");
}

TEST(Utf8, AnyBytesBecomeTextWithoutControls) {
  Rng rng = Rng::stream(2, "utf8");
  for (int i = 0; i < 20'000; ++i) {
    std::string text(rng.below(40), '\0');
    for (char& c : text) c = static_cast<char>(rng.below(256));
    const std::string shown = terminal_text(text, Newlines::kEscaped);
    ASSERT_EQ(first_invalid_utf8(shown), kValid);
    for (std::size_t at = 0; at < shown.size(); ++at) ASSERT_EQ(control_length(shown, at), 0u);
  }
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
