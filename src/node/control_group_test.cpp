// node/control_group_test.cpp - the contract of control groups, with each driver that this machine
// lets us run; what could not be run says so.
#include "node/control_group.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>

namespace orrery {
namespace {

using Version = ControlGroupPlace::Version;

std::string slurp(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Where this machine would put a group of this version; none: it has no such tree.
Result<ControlGroupPlace> place_of(Version version) {
  const std::string groups = slurp("/proc/self/cgroup");
  const std::string mounts = slurp("/proc/self/mounts");
  std::string kept;
  // Only the mounts of the version that is asked for.
  for (std::size_t at = 0, end = 0; at < mounts.size(); at = end + 1) {
    end = std::min(mounts.find('\n', at), mounts.size());
    const std::string line = mounts.substr(at, end - at);
    if ((line.find(" cgroup2 ") != line.npos) == (version == Version::kV2)) kept += line + "\n";
  }
  return own_control_group({groups, kept});
}

class ControlGroupTest : public ::testing::TestWithParam<Version> {
 protected:
  void SetUp() override {
    const Result<ControlGroupPlace> place = place_of(GetParam());
    if (!place) GTEST_SKIP() << "NOT RUN HERE: " << place.error().text();
    place_ = *place;
    name_ = "orrery-test-" + std::to_string(::getpid());
    auto group = ControlGroup::make(place_, name_);
    if (!group) GTEST_SKIP() << "NOT RUN HERE: " << group.error().text();
    group_ = *std::move(group);
  }

  /// A process that joins, starts one more, and waits; both end with the group alone.
  pid_t start_two() {
    const pid_t pid = ::fork();
    if (pid == 0) {
      if (::write(group_->members().front(), "0", 1) != 1) ::_exit(1);
      (void)::setsid();
      (void)::fork();
      while (true) ::pause();
    }
    return pid;
  }

  /// A process that joins and then does `work`, which never ends.
  template <class Work>
  pid_t start_one(Work work) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      for (const int group : group_->members()) {
        if (::write(group, "0", 1) != 1) ::_exit(1);
      }
      while (true) work();
    }
    return pid;
  }
  /// The number behind a word of cpu.stat.
  [[nodiscard]] std::uint64_t cpu_count(const std::string& word) const {
    const bool v1 = GetParam() == Version::kV1Freezer;
    std::ifstream stat((v1 ? place_.cpu : place_.directory) + "/" + name_ + "/cpu.stat");
    std::uint64_t count = 0;
    for (std::string name; stat >> name >> count;) {
      if (name == word) return count;
    }
    return 0;
  }

  ControlGroupPlace place_;
  std::string name_;
  std::unique_ptr<ControlGroup> group_;
};

TEST_P(ControlGroupTest, KillsAllThatIsInItAndGoesAwayWithItsOwner) {
  EXPECT_TRUE(group_->empty());
  const pid_t pid = start_two();
  ASSERT_GT(pid, 0);
  // Its second process is one nobody waits for; killing goes on until the group is empty.
  int status = 0;
  while (group_->empty()) {
    ASSERT_EQ(::waitpid(pid, &status, WNOHANG), 0) << "it could not join";
  }
  while (!group_->empty()) group_->kill();
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  group_.reset();
  EXPECT_NE(::access((place_.directory + "/" + name_).c_str(), F_OK), 0);
}

TEST_P(ControlGroupTest, WhatAKilledKillerHoldsStillEndsOnceItMayGoOn) {
  if (GetParam() != Version::kV1Freezer) return;  // v2 kills at once
  const pid_t held = start_one([] { ::pause(); });
  while (group_->empty()) {
  }
  const std::string state = place_.directory + "/" + name_ + "/freezer.state";
  std::ofstream(state) << "FROZEN";
  while (slurp(state.c_str()) != "FROZEN\n") {
  }
  (void)::kill(held, SIGKILL);
  EXPECT_EQ(::waitpid(held, nullptr, WNOHANG), 0) << "it is held still";
  let_go_on(held);
  int status = 0;
  EXPECT_EQ(::waitpid(held, &status, 0), held);
  EXPECT_TRUE(WIFSIGNALED(status));
}

TEST_P(ControlGroupTest, AKillerThatIsKilledHoldsNobody) {
  for (int round = 0; round < 40; ++round) {
    const pid_t member = start_one([] { ::pause(); });
    while (group_->empty()) {
    }
    const pid_t killer = ::fork();
    if (killer == 0) {
      for (;;) group_->kill();
    }
    // At another moment each time: many are within a kill.
    (void)::poll(nullptr, 0, round % 3);
    (void)::kill(killer, SIGKILL);
    (void)::waitpid(killer, nullptr, 0);
    (void)::kill(member, SIGKILL);
    // Held, it would not end by itself.
    int status = 0;
    pid_t ended = 0;
    for (int tries = 0; tries < 500 && ended == 0; ++tries) {
      ended = ::waitpid(member, &status, WNOHANG);
      if (ended == 0) (void)::poll(nullptr, 0, 10);
    }
    if (ended == 0) let_go_on(member);
    ASSERT_EQ(ended, member) << "round " << round;
  }
}

TEST_P(ControlGroupTest, TakesOverAnEmptyOneThatWasLeftAndNoOther) {
  group_.reset();
  ASSERT_EQ(::mkdir((place_.directory + "/" + name_).c_str(), 0755), 0);
  auto again = ControlGroup::make(place_, name_);
  ASSERT_TRUE(again) << again.error().text();
  group_ = *std::move(again);
  const pid_t pid = start_two();
  while (group_->empty()) {
  }
  EXPECT_FALSE(ControlGroup::make(place_, name_));
  while (!group_->empty()) group_->kill();
  ASSERT_EQ(::waitpid(pid, nullptr, 0), pid);
}

TEST_P(ControlGroupTest, WhoTakesMoreMemoryThanAllMayHaveIsKilledAndCounted) {
  constexpr std::size_t kMebibyte = std::size_t{1} << 20;
  const Status limited = group_->limit({.memory = 32 * kMebibyte});
  if (!limited) GTEST_SKIP() << "NOT RUN HERE: " << limited.error().text();
  EXPECT_EQ(group_->memory_kills(), 0u);
  const pid_t pid = start_one([left = 256]() mutable {
    void* part =
        ::mmap(nullptr, kMebibyte, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (part == MAP_FAILED || --left == 0) ::_exit(2);
    std::memset(part, 1, kMebibyte);
  });
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  EXPECT_EQ(group_->memory_kills(), 1u);
  // Limits follow what is wanted, up and away.
  EXPECT_TRUE(group_->limit({.memory = 64 * kMebibyte}));
  EXPECT_TRUE(group_->limit({}));
}

TEST_P(ControlGroupTest, WhoIsAlwaysBusyIsHeldBackToItsPartOfACore) {
  // It is there before the limit is.
  const pid_t pid = start_one([] {});
  while (group_->empty()) {
    ASSERT_EQ(::waitpid(pid, nullptr, WNOHANG), 0) << "it could not join";
  }
  const Status limited = group_->limit({.cpu = 20});
  if (!limited) {
    while (!group_->empty()) group_->kill();
    (void)::waitpid(pid, nullptr, 0);
    GTEST_SKIP() << "NOT RUN HERE: " << limited.error().text();
  }
  while (cpu_count("nr_throttled") == 0) {
    ASSERT_EQ(::waitpid(pid, nullptr, WNOHANG), 0) << "it could not join";
  }
  EXPECT_TRUE(group_->limit({}));
  while (!group_->empty()) group_->kill();
  ASSERT_EQ(::waitpid(pid, nullptr, 0), pid);
  const std::string directory = place_.cpu + "/" + name_;
  group_.reset();
  EXPECT_NE(::access(directory.c_str(), F_OK), 0);
}

INSTANTIATE_TEST_SUITE_P(Drivers, ControlGroupTest,
                         ::testing::Values(Version::kV1Freezer, Version::kV2),
                         [](const auto& tested) {
                           return tested.param == Version::kV2 ? "V2" : "V1Freezer";
                         });

TEST(ControlGroupPlaces, AreFoundInWhatTheKernelSays) {
  const std::string v2 = "none /x/unified cgroup2 rw 0 0\n";
  const std::string v1 = "c /x/cpu cgroup rw,cpu 0 0\nc /x/ice cgroup rw,freezer 0 0\n";
  const auto pure = own_control_group({"0::/a/b\n", v2});
  ASSERT_TRUE(pure);
  EXPECT_EQ(pure->version, Version::kV2);
  EXPECT_EQ(pure->directory, "/x/unified/a/b");
  const std::string groups = "6:freezer:/\n1:cpu:/c\n0::/a\n";
  const std::string both = v2 + v1;
  const auto hybrid = own_control_group({groups, both});
  ASSERT_TRUE(hybrid);
  EXPECT_EQ(hybrid->version, Version::kV1Freezer);
  EXPECT_EQ(hybrid->directory, "/x/ice");
  EXPECT_EQ(hybrid->cpu, "/x/cpu/c");
  EXPECT_EQ(hybrid->memory, "");
  EXPECT_FALSE(own_control_group({"", ""}));
}

}  // namespace
}  // namespace orrery
