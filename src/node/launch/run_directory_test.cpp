// node/launch/run_directory_test.cpp - one place in memory for as long as its link stands, none for
// others.
#include "node/launch/run_directory.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "node/keeper/keeper_guard.hpp"

namespace orrery {
namespace {

class RunDirectoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "orrery_run_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
    attempts_ = directory_ + "/attempts";
  }
  void TearDown() override {
    leave_run_directory(directory_);
    std::filesystem::remove_all(directory_);
  }
  /// Where it is in memory; empty: nowhere on this machine.
  [[nodiscard]] std::string in_memory() const {
    const std::string own = own_run_directory(directory_).value();
    return own == attempts_ ? "" : own;
  }

  std::string directory_;
  std::string attempts_;
};

TEST_F(RunDirectoryTest, IsTheSameForEveryAgentOfTheDirectory) {
  const std::string first = in_memory();
  if (first.empty()) GTEST_SKIP() << "NOT RUN HERE: not root, or nothing is in memory";
  EXPECT_EQ(in_memory(), first);
  struct stat status{};
  ASSERT_EQ(::stat(first.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0711u) << "programs find files of theirs, nobody lists them";
  std::filesystem::remove(first);  // As a boot does.
  const std::string second = in_memory();
  EXPECT_TRUE(std::filesystem::is_directory(second));
  EXPECT_EQ(std::filesystem::read_symlink(directory_ + "/run"), second);
}

TEST_F(RunDirectoryTest, IsLeftOnceNobodyLivesInIt) {
  const std::string run = in_memory();
  if (run.empty()) GTEST_SKIP() << "NOT RUN HERE: not root, or nothing is in memory";
  const KeeperFiles lives{attempts_ + "/1-1", run + "/1-1"};
  const KeeperFiles over{attempts_ + "/2-1", run + "/2-1"};
  for (const KeeperFiles& files : {lives, over}) {
    std::filesystem::create_directories(files.run);
    std::ofstream(files.launch()) << "launch";
  }
  {
    const Result<FileDescriptor> lock = lock_keeper_directory(lives);
    ASSERT_TRUE(lock);
    EXPECT_EQ(attempt_locks(directory_).size(), 2u);
    leave_run_directory(directory_);
    EXPECT_TRUE(std::filesystem::exists(lives.launch()));
    EXPECT_FALSE(std::filesystem::exists(over.run));
    EXPECT_EQ(in_memory(), run);
  }
  leave_run_directory(directory_);
  EXPECT_FALSE(std::filesystem::exists(run));
  EXPECT_FALSE(std::filesystem::is_symlink(directory_ + "/run"));
  leave_run_directory(directory_);  // There is none.
}

TEST_F(RunDirectoryTest, ASearchableDirectoryLetsOthersThroughAndIsNotListed) {
  ASSERT_EQ(::chmod(directory_.c_str(), 0700), 0);
  make_searchable(directory_);
  struct stat status{};
  ASSERT_EQ(::stat(directory_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0711u);
}

TEST_F(RunDirectoryTest, ALinkToWhatIsNoDirectoryOfThisUsersIsAnError) {
  std::ofstream(directory_ + "/file") << "text";
  std::filesystem::create_symlink(directory_ + "/file", directory_ + "/run");
  const Result<std::string> run = own_run_directory(directory_);
  ASSERT_FALSE(run);
  EXPECT_NE(run.error().message.find("leads to " + directory_ + "/file"), std::string::npos)
      << run.error().message;
}

}  // namespace
}  // namespace orrery
