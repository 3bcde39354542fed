#include "base/text/name_check.hpp"

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

TEST(PosixUser, IsANameAsUseraddTakesItAndNotRoot) {
  for (const char* good : {"ada", "_slurm", "a.b-c_9", "Ada"}) {
    EXPECT_TRUE(check_posix_user(good, {})) << good;
  }
  for (const char* bad : {"", "root", "0", "1000", "9a", "-a", "a b", "a:b", "a$"}) {
    EXPECT_FALSE(check_posix_user(bad, {})) << bad;
  }
  EXPECT_TRUE(check_posix_user(std::string(32, 'a'), {}));
  EXPECT_FALSE(check_posix_user(std::string(33, 'a'), {}));
}

}  // namespace
}  // namespace orrery
