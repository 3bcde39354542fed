// base/text/text_table_test.cpp - aligned columns and wrapped lines.
#include "base/text/text_table.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(TextTable, AlignsColumnsUnderTheirTitles) {
  TextTable table({{"name"}, {"count", Align::kRight}});
  table.add({"h100", "8"});
  table.add({"gb200-nvl72", "1,152"});
  EXPECT_EQ(table.text(),
            "name         count\n"
            "h100             8\n"
            "gb200-nvl72  1,152\n");
}

TEST(TextTable, LeavesNoBlanksAtTheEndOfALine) {
  TextTable table({{"a"}, {"b"}});
  table.add({"long cell", ""});
  table.add({"x"});
  EXPECT_EQ(table.text(), "a          b\nlong cell\nx\n");
}

TEST(TextTable, PrintsNoTitlesWhenAllAreEmpty) {
  TextTable table({{""}, {""}});
  EXPECT_TRUE(table.empty());
  EXPECT_EQ(table.text(), "");
  table.add({"key", "value"});
  EXPECT_FALSE(table.empty());
  EXPECT_EQ(table.text(), "key  value\n");
}

TEST(TextTable, MeasuresCodePointsNotBytes) {
  TextTable table({{"city"}, {"n"}});
  table.add({"Zürich", "1"});
  table.add({"Berlin", "2"});
  EXPECT_EQ(table.text(), "city    n\nZürich  1\nBerlin  2\n");
}

TEST(TextTable, ACellIsOneLineWhateverItHolds) {
  TextTable table({{"name"}, {"why"}});
  table.add({"a\nb", "\x1b[31mred"});
  table.colour(0, "32");
  EXPECT_EQ(table.text(), "name  why\n\x1b[32ma\\nb\x1b[0m  \\x1b[31mred\n");
}

TEST(TextTableDeathTest, StopsAtARowWithMoreCellsThanColumns) {
  TextTable table({{"a"}});
  EXPECT_DEATH(table.add({"1", "2"}), "as many cells as columns");
}

TEST(Wrapped, BreaksAtBlanksOnly) {
  EXPECT_EQ(wrapped("one two three", 7), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(wrapped("  one   two ", 80), (std::vector<std::string>{"one two"}));
  EXPECT_EQ(wrapped("unbreakable a", 4), (std::vector<std::string>{"unbreakable", "a"}));
  EXPECT_TRUE(wrapped("", 10).empty());
}

TEST(Wrapped, MeasuresCodePointsNotBytes) {
  EXPECT_EQ(wrapped("äö üß", 5), (std::vector<std::string>{"äö üß"}));
}

}  // namespace
}  // namespace orrery
