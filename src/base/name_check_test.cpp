#include "base/name_check.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(Matches, AStarIsAnyBytesAndAQuestionMarkOne) {
  EXPECT_TRUE(matches("train-gpt", "train-gpt"));
  EXPECT_TRUE(matches("train-gpt", "train-*"));
  EXPECT_TRUE(matches("train-gpt", "*gpt"));
  EXPECT_TRUE(matches("train-gpt", "*-*"));
  EXPECT_TRUE(matches("train-gpt", "tr*n-???"));
  EXPECT_TRUE(matches("abcabd", "*abd"));
  EXPECT_TRUE(matches("abab", "a*b"));
  EXPECT_TRUE(matches("", "**"));
  EXPECT_FALSE(matches("train-gpt", "train"));
  EXPECT_FALSE(matches("train-gpt", "gpt"));
  EXPECT_FALSE(matches("train-gpt", "train-????"));
  EXPECT_FALSE(matches("train", "train?"));
  EXPECT_FALSE(matches("", "?"));
  EXPECT_FALSE(matches("x", ""));
}

TEST(Matches, ManyStarsTakeNoLonger) {
  std::string pattern;
  for (int i = 0; i < 500; ++i) pattern += "a*";
  EXPECT_FALSE(matches(std::string(1000, 'a'), pattern + "b"));
  EXPECT_TRUE(matches(std::string(1000, 'a'), pattern));
}

}  // namespace
}  // namespace orrery
