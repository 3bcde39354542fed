// node/launch/attempt_directories_test.cpp - what lives is found, what is over cannot come back,
// what is old goes.
#include "node/launch/attempt_directories.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/system/real_clock.hpp"
#include "base/system/real_storage.hpp"
#include "node/keeper/keeper_guard.hpp"

namespace orrery {
namespace {

class AttemptDirectoriesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "orrery_attempt_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  KeeperFiles make(AttemptDirectories& directories, std::uint32_t job) {
    const KeeperFiles files = directories.files({JobId(job), 1});
    std::filesystem::create_directories(files.logs);
    std::ofstream(files.launch()) << "launch";
    std::ofstream(log_path(files, {0, job})) << "log";
    return files;
  }
  [[nodiscard]] std::size_t count() {
    return storage_.list(directory_).value_or(std::vector<std::string>()).size();
  }

  std::string directory_;
  RealStorage storage_;
};

TEST_F(AttemptDirectoriesTest, WhatIsHeldLivesAndAllElseIsSealed) {
  AttemptDirectories directories(storage_, directory_, directory_);
  const KeeperFiles held = make(directories, 1);
  const KeeperFiles over = make(directories, 2);
  {
    const Result<FileDescriptor> lock = lock_keeper_directory(held);
    ASSERT_TRUE(lock);
    EXPECT_EQ(directories.find_living().value(), (std::vector<AttemptId>{{JobId(1), 1}}));
    EXPECT_TRUE(std::filesystem::exists(held.launch()));
    EXPECT_FALSE(std::filesystem::exists(over.launch())) << "a late keeper finds nothing to do";
    EXPECT_FALSE(seal_if_over(held));
  }
  EXPECT_TRUE(seal_if_over(held));
  EXPECT_TRUE(seal_if_over(held)) << "again";
  EXPECT_TRUE(seal_if_over(directories.files({JobId(9), 1}))) << "never was";
  const std::vector<LoggedRank> ranks = logged_ranks(storage_, over);
  ASSERT_EQ(ranks.size(), 1u);
  EXPECT_EQ(ranks[0].rank, 2u);
}

TEST_F(AttemptDirectoriesTest, WhatRanksHaveLeftBehindIsEndedBeforeItIsOver) {
  AttemptDirectories directories(storage_, directory_, directory_);
  const auto started = [](const KeeperFiles& files) {
    std::string variable = "ORRERY_PROGRESS=" + files.progress();
    std::string program = "/bin/sleep";
    std::string seconds = "1000";
    char* arguments[] = {program.data(), seconds.data(), nullptr};
    char* environment[] = {variable.data(), nullptr};
    pid_t process = 0;
    EXPECT_EQ(::posix_spawn(&process, program.c_str(), nullptr, nullptr, arguments, environment),
              0);
    return process;
  };
  const KeeperFiles files = make(directories, 1);
  const KeeperFiles longer = make(directories, 11);
  const pid_t left = started(files);
  const pid_t other = started(longer);
  // The program may still be in exec, where its environment cannot be read yet.
  EXPECT_FALSE(seal_if_over(files));
  if (HasFailure()) (void)::kill(left, SIGTERM);
  int status = 0;
  EXPECT_EQ(::waitpid(left, &status, 0), left);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_TRUE(seal_if_over(files));
  EXPECT_EQ(::waitpid(other, &status, WNOHANG), 0) << "it is of another attempt";
  (void)::kill(other, SIGKILL);
  (void)::waitpid(other, &status, 0);
}

TEST_F(AttemptDirectoriesTest, WhatEndsWithTheBootIsElsewhereAndGoesWithTheEnd) {
  const std::string run = directory_ + "/run";
  const std::string attempts = directory_ + "/attempts";
  AttemptDirectories directories(storage_, attempts, run);
  const auto begin = [&](std::uint32_t job) {
    const KeeperFiles files = directories.files({JobId(job), 1});
    std::filesystem::create_directories(files.run);
    return make(directories, job);
  };
  const KeeperFiles held = begin(1);
  const KeeperFiles over = begin(2);
  EXPECT_EQ(held.run, run + "/1-1");
  EXPECT_EQ(held.directory, attempts + "/1-1");
  EXPECT_FALSE(std::filesystem::exists(held.directory + "/launch"));
  const Result<FileDescriptor> lock = lock_keeper_directory(held);
  // One whose directory on the disk is gone, and one of an agent that had no other place.
  std::filesystem::remove_all(attempts + "/1-1");
  const KeeperFiles before{attempts + "/3-1"};
  std::filesystem::create_directories(before.directory + "/logs");
  std::ofstream(before.launch()) << "launch";
  const Result<FileDescriptor> lock_before = lock_keeper_directory(before);
  ASSERT_TRUE(lock && lock_before);

  EXPECT_EQ(directories.find_living().value(),
            (std::vector<AttemptId>{{JobId(1), 1}, {JobId(3), 1}}));
  EXPECT_EQ(directories.files({JobId(3), 1}).run, before.directory);
  EXPECT_EQ(directories.files({JobId(3), 1}).logs, before.directory + "/logs");
  EXPECT_FALSE(std::filesystem::exists(over.run));
  EXPECT_TRUE(std::filesystem::exists(log_path(over, {0, 2}))) << "its logs are still there";
  EXPECT_TRUE(seal_if_over(over)) << "again";
}

TEST_F(AttemptDirectoriesTest, TheNewestAreKeptForADay) {
  AttemptDirectories directories(storage_, directory_, directory_);
  const Instant now = RealClock().now_wall();
  for (std::uint32_t job = 0; job < AttemptDirectories::kEndedMax + 2; ++job) {
    make(directories, job);
    directories.note_ended({JobId(job), 1}, now);
  }
  while (directories.remove_some(now)) {
  }
  EXPECT_EQ(count(), AttemptDirectories::kEndedMax);
  EXPECT_FALSE(std::filesystem::exists(directories.files({JobId(1), 1}).directory));
  directories.note_started({JobId(7), 1});
  while (directories.remove_some(now + AttemptDirectories::kEndedAge + Duration::seconds(1))) {
  }
  EXPECT_EQ(storage_.list(directory_).value(), std::vector<std::string>{"7-1"}) << "in use again";
}

TEST_F(AttemptDirectoriesTest, SparseFilesAndScratchCostNoOtherAttemptItsLogs) {
  AttemptDirectories directories(storage_, directory_, directory_);
  const Instant now = RealClock().now_wall();
  const auto sparse = [](const std::string& directory) {
    std::filesystem::create_directories(directory);
    std::ofstream(directory + "/model") << "";
    std::filesystem::resize_file(directory + "/model", AttemptDirectories::kEndedBytesMax * 2);
  };
  make(directories, 1);
  directories.note_ended({JobId(1), 1}, now);
  const KeeperFiles hostile = make(directories, 2);
  sparse(hostile.scratch());
  sparse(hostile.work());
  std::filesystem::create_directories(hostile.scratch() + "/deep/er");
  for (int i = 0; i < 1000; ++i) std::ofstream(hostile.scratch() + fmt::format("/deep/{}", i)) << i;
  directories.note_ended({JobId(2), 1}, now);
  while (directories.remove_some(now)) {
  }
  EXPECT_EQ(count(), 2U) << "what was never written takes no room";
  EXPECT_FALSE(std::filesystem::exists(hostile.scratch())) << "it goes with its attempt's end";
  EXPECT_TRUE(std::filesystem::exists(hostile.work() + "/model"));
  EXPECT_TRUE(std::filesystem::exists(log_path(hostile, {0, 2})));
}

TEST_F(AttemptDirectoriesTest, TheAttemptThatTakesMostGoesFirst) {
  AttemptDirectories directories(storage_, directory_, directory_, 1'000'000);
  const Instant now = RealClock().now_wall();
  const auto end_with = [&](std::uint32_t job, std::size_t bytes) {
    const KeeperFiles files = make(directories, job);
    std::filesystem::create_directories(files.work());
    std::ofstream(files.work() + "/model") << std::string(bytes, 'x');
    directories.note_ended({JobId(job), 1}, now);
    while (directories.remove_some(now)) {
    }
  };
  end_with(1, 100);
  end_with(2, 700'000);
  end_with(3, 900'000);
  EXPECT_EQ(storage_.list(directory_).value(), (std::vector<std::string>{"1-1", "2-1"}));
  end_with(4, 500'000);
  EXPECT_EQ(storage_.list(directory_).value(), (std::vector<std::string>{"1-1", "4-1"}));
  std::filesystem::remove_all(directory_ + "/1-1");
  directories.note_started({JobId(1), 1});
  directories.note_started({JobId(4), 1});
  end_with(5, 2'000'000);
  EXPECT_TRUE(std::filesystem::exists(directories.files({JobId(5), 1}).directory))
      << "the only one";
}

}  // namespace
}  // namespace orrery
