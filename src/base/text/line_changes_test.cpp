// base/text/line_changes_test.cpp - that each difference of two texts is told with its line.
#include "base/text/line_changes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/numbers/rng.hpp"
#include "base/system/real_storage.hpp"

namespace orrery {
namespace {

std::string told(std::string_view before, std::string_view after) {
  std::string text;
  for (const LineChange& change : line_changes(before, after)) {
    text += change_text("a.yaml", change) + "\n";
  }
  return text;
}

TEST(LineChanges, NameEachLineWithWhatItWasAndIs) {
  EXPECT_EQ(told("a\nb\nc\n", "a\nb\nc\n"), "");
  EXPECT_EQ(told("a\nb\nc\n", "a\nx\nc\n"), "a.yaml:2: \"b\" is now \"x\"\n");
  EXPECT_EQ(told("a\nc\n", "a\nb\nc\n"), "a.yaml:2: \"b\" is new\n");
  EXPECT_EQ(told("a\nb\nc\n", "a\nc\n"), "a.yaml:2: \"b\" is gone\n");
  EXPECT_EQ(told("a\nb\n", ""), "a.yaml:1: \"a\" is gone\na.yaml:2: \"b\" is gone\n");
  EXPECT_EQ(told("a\nb\nc\n", "x\nb\ny\n"),
            "a.yaml:1: \"a\" is now \"x\"\na.yaml:3: \"c\" is now \"y\"\n");
  EXPECT_EQ(told("a\n", "a"), "a.yaml:1: \"\" is now \"\"\n");
  EXPECT_EQ(told("a\n", "\x1b[31m\n"), "a.yaml:1: \"a\" is now \"?[31m\"\n");
  EXPECT_EQ(line_changes("", std::string(100, '\n')).size(), kLineChangesMax);
}

TEST(LineChanges, NoFlippedByteIsMissed) {
  Rng rng(1);
  const std::string text = "tenants:\n- {name: default}\n- {name: lab, weight: 2}\n";
  for (int i = 0; i < 2'000; ++i) {
    std::string flipped = text;
    const std::size_t at = rng.below(text.size());
    flipped[at] = static_cast<char>(flipped[at] ^ static_cast<char>(1 + rng.below(255)));
    const std::vector<LineChange> changes = line_changes(text, flipped);
    ASSERT_FALSE(changes.empty()) << at;
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<long>(at), '\n');
    EXPECT_EQ(changes.front().line, static_cast<std::size_t>(line)) << at;
  }
}

TEST(LineChanges, OfAFileAreThoseSinceItWasAppliedLast) {
  std::string name = (std::filesystem::temp_directory_path() / "orrery_lines_XXXXXX").string();
  ASSERT_NE(::mkdtemp(name.data()), nullptr);
  RealStorage storage;
  const std::string path = name + "/agent.yaml";
  EXPECT_TRUE(changes_since_applied(storage, path, "a: 1\n").empty()) << "it is the first";
  EXPECT_TRUE(changes_since_applied(storage, path, "a: 1\n").empty());
  EXPECT_EQ(changes_since_applied(storage, path, "a: 2\n").size(), 1U);
  EXPECT_TRUE(changes_since_applied(storage, path, "a: 2\n").empty()) << "it was told";
  std::filesystem::remove_all(name);
}

}  // namespace
}  // namespace orrery
