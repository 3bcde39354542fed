#include "verbs/local/local_process.hpp"

#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/system/real_storage.hpp"

namespace orrery {
namespace {

constexpr Duration kPatience = Duration::seconds(30);

std::string log_file() {
  return ::testing::TempDir() + "local_process_" +
         ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".log";
}

TEST(LocalProcessTest, AProgramIsFoundByNumberAndStartAndEndsForGood) {
  const auto process =
      start_process({.program = "/bin/sleep", .arguments = {"600"}, .log = log_file()});
  ASSERT_TRUE(process) << process.error().text();
  EXPECT_EQ(identity_of(process->pid), *process);
  const ProcessHandle handle(*process);
  EXPECT_TRUE(handle.alive());
  // A number with another start is another process.
  EXPECT_FALSE(ProcessHandle({process->pid, process->started + 1}).alive());
  handle.signal(SIGKILL);
  EXPECT_TRUE(handle.ended_within(kPatience));
  EXPECT_EQ(identity_of(process->pid), ProcessIdentity());
  (void)::waitpid(static_cast<pid_t>(process->pid), nullptr, 0);
}

TEST(LocalProcessTest, OutputIsAppendedAndInputIsEmpty) {
  const std::string log = log_file();
  (void)::unlink(log.c_str());
  for (int run = 0; run < 2; ++run) {
    const auto process = start_process(
        {.program = "/bin/sh", .arguments = {"-c", "cat; echo out; echo err >&2"}, .log = log});
    ASSERT_TRUE(process) << process.error().text();
    (void)::waitpid(static_cast<pid_t>(process->pid), nullptr, 0);
  }
  EXPECT_EQ(RealStorage().read_file(log, 1 << 20).value(), "out\nerr\nout\nerr\n");
}

TEST(LocalProcessTest, WhatCannotBeStartedIsNamed) {
  EXPECT_EQ(start_process({.program = "/no/such/program", .arguments = {}, .log = log_file()})
                .error()
                .text(),
            "cannot start /no/such/program: No such file or directory");
  EXPECT_EQ(start_process({.program = "/bin/true", .arguments = {}, .log = "/no/such/log"})
                .error()
                .text(),
            "cannot write /no/such/log: No such file or directory");
}

TEST(LocalProcessTest, NoNumberIsNoProcess) {
  for (const std::int64_t pid : {0, -1}) {
    EXPECT_EQ(identity_of(pid), ProcessIdentity());
    EXPECT_FALSE(ProcessHandle({pid, 0}).alive());
  }
  EXPECT_EQ(identity_of(::getpid()).pid, ::getpid());
  EXPECT_TRUE(ProcessHandle(identity_of(::getpid())).alive());
}

TEST(LocalProcessTest, AnUnlockedFileHasNoHolder) {
  const std::string path = log_file();
  EXPECT_EQ(lock_holder(path + ".none"), ProcessIdentity());
  ASSERT_TRUE(RealStorage().write_file(path, ""));
  EXPECT_EQ(lock_holder(path), ProcessIdentity());
}

}  // namespace
}  // namespace orrery
