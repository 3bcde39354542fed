#include "node/launch/tree_removal.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace orrery {
namespace {

class TreeRemovalTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "orrery_tree_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override {
    while (!TreeRemoval(1'000).remove(directory_)) {
    }
  }
  std::string directory_;
};

TEST_F(TreeRemovalTest, FollowsNoLinkOutOfTheTree) {
  const std::string tree = directory_ + "/tree";
  std::filesystem::create_directories(directory_ + "/kept");
  std::ofstream(directory_ + "/kept/file") << "kept";
  std::filesystem::create_directories(tree + "/a");
  std::filesystem::create_directory_symlink(directory_ + "/kept", tree + "/a/link");
  std::filesystem::create_symlink(directory_ + "/kept/file", tree + "/file");
  EXPECT_TRUE(TreeRemoval(100).remove(tree));
  EXPECT_FALSE(std::filesystem::exists(tree));
  EXPECT_TRUE(std::filesystem::exists(directory_ + "/kept/file"));
  // What was a directory when it was listed may be a link when it is opened.
  std::filesystem::create_directory_symlink(directory_ + "/kept", tree);
  EXPECT_TRUE(TreeRemoval(100).remove(tree));
  EXPECT_FALSE(std::filesystem::is_symlink(tree));
  EXPECT_TRUE(std::filesystem::exists(directory_ + "/kept/file"));
}

TEST_F(TreeRemovalTest, RemovesTreesThatAreDeeperThanAnyPath) {
  const std::string tree = directory_ + "/tree";
  ASSERT_EQ(::mkdir(tree.c_str(), 0700), 0);
  int at = ::open(tree.c_str(), O_RDONLY | O_DIRECTORY);
  for (int level = 0; level < 3'000; ++level) {
    ASSERT_EQ(::mkdirat(at, "ab", 0700), 0);
    const int next = ::openat(at, "ab", O_RDONLY | O_DIRECTORY);
    ::close(at);
    at = next;
  }
  ::close(at);
  int pieces = 0;
  while (!TreeRemoval(300).remove(tree)) ASSERT_LT(++pieces, 100);
  EXPECT_GT(pieces, 5) << "each piece is bounded";
  EXPECT_NE(::access(tree.c_str(), F_OK), 0);
}

TEST_F(TreeRemovalTest, TakesAsManyEntriesAPieceAsItMay) {
  const std::string tree = directory_ + "/tree";
  std::filesystem::create_directory(tree);
  for (int file = 0; file < 25; ++file) std::ofstream(tree + "/" + std::to_string(file)) << "x";
  TreeRemoval first(10);
  EXPECT_FALSE(first.remove(tree));
  EXPECT_EQ(first.removed(), 10);
  EXPECT_FALSE(TreeRemoval(10).remove(tree));
  EXPECT_TRUE(TreeRemoval(10).remove(tree));
  EXPECT_FALSE(std::filesystem::exists(tree));
  EXPECT_TRUE(TreeRemoval(10).remove(tree)) << "it is gone already";
}

}  // namespace
}  // namespace orrery
