#include "verbs/local/local_process.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/system/file_descriptor.hpp"
#include "verbs/scratch_files_test.hpp"

namespace orrery {
namespace {

constexpr Duration kPatience = Duration::seconds(30);

TEST(LocalProcessTest, AProgramIsFoundByNumberAndStartAndEndsForGood) {
  const ScratchFiles files;
  const auto process =
      start_process({.program = "/bin/sleep", .arguments = {"600"}, .log = files.path("log")});
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
  const ScratchFiles files;
  for (int run = 0; run < 2; ++run) {
    const auto process = start_process({.program = "/bin/sh",
                                        .arguments = {"-c", "cat; echo out; echo err >&2"},
                                        .log = files.path("log")});
    ASSERT_TRUE(process) << process.error().text();
    (void)::waitpid(static_cast<pid_t>(process->pid), nullptr, 0);
  }
  EXPECT_EQ(files.read("log"), "out\nerr\nout\nerr\n");
}

TEST(LocalProcessTest, WhatCannotBeStartedIsNamed) {
  const ScratchFiles files;
  const std::string log = files.path("log");
  EXPECT_EQ(
      start_process({.program = "/no/such/program", .arguments = {}, .log = log}).error().text(),
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
  const ScratchFiles files;
  EXPECT_EQ(lock_holder(files.path("none")), ProcessIdentity());
  EXPECT_EQ(lock_holder(files.write("free", "")), ProcessIdentity());
}

TEST(LocalProcessTest, TheHolderOfALockIsFoundUntilItLetsGo) {
  const ScratchFiles files;
  const std::string path = files.write("lock", "");
  const std::string other = files.write("other", "");
  {
    const FileDescriptor lock(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_TRUE(lock.valid());
    ASSERT_EQ(::flock(lock.get(), LOCK_EX | LOCK_NB), 0);
    EXPECT_EQ(lock_holder(path), identity_of(::getpid()));
    EXPECT_EQ(lock_holder(other), ProcessIdentity()) << "the lock is that of another file";
  }
  EXPECT_EQ(lock_holder(path), ProcessIdentity());
}

}  // namespace
}  // namespace orrery
