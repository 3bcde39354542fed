// node/machine/control_group_test.cpp - the contract of control groups, with each driver that this
// machine lets us run; what could not be run says so.
#include "node/machine/control_group.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
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
  // Its second process is never waited for; killing goes on until the group is empty.
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

TEST_P(ControlGroupTest, RefusesAnotherProcessAboveTheLimit) {
  constexpr std::uint64_t kProcesses = 8;
  const Status limited = group_->limit_processes(kProcesses);
  if (!limited) GTEST_SKIP() << "NOT RUN HERE: " << limited.error().text();
  // Forks until the kernel refuses, then says how many it had, itself included.
  const pid_t pid = start_one([had = 1]() mutable {
    const pid_t child = ::fork();
    if (child == 0) ::pause();
    if (child < 0) ::_exit(errno == EAGAIN ? had : 100);
    if (++had > 50) ::_exit(101);
  });
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), kProcesses);
  EXPECT_TRUE(group_->limit_processes(0));
  while (!group_->empty()) group_->kill();
}

constexpr DeviceNumber kNull{.major = 1, .minor = 3};
constexpr DeviceNumber kZero{.major = 1, .minor = 5};
constexpr DeviceNumber kFull{.major = 1, .minor = 7};

/// What a process of the group may open of /dev/null, zero and full: bits 1, 2 and 4.
int openable(const ControlGroup& group) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    for (const int members : group.members()) {
      if (::write(members, "0", 1) != 1) ::_exit(100);
    }
    int answer = 0;
    int bit = 1;
    for (const char* path : {"/dev/null", "/dev/zero", "/dev/full"}) {
      const int file = ::open(path, O_RDONLY);
      if (file >= 0) answer |= bit;
      if (file < 0 && errno != EPERM) ::_exit(101);
      bit <<= 1;
    }
    ::_exit(answer);
  }
  int status = 0;
  if (::waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

void expect_devices_follow_what_is_denied(ControlGroup& group) {
  const Status denied = group.deny_devices({kZero, kFull});
  ASSERT_TRUE(denied) << denied.error().text();
  EXPECT_EQ(openable(group), 1);
  // The devices of an attempt change when it is resized.
  ASSERT_TRUE(group.deny_devices({kNull, kFull}));
  EXPECT_EQ(openable(group), 2);
  ASSERT_TRUE(group.deny_devices({}));
  EXPECT_EQ(openable(group), 7);
}

TEST_P(ControlGroupTest, KeepsItsProcessesFromDevicesOfOthers) {
  // Device files are denied by root alone, and a suite that cannot show it must not pass.
  ASSERT_EQ(::geteuid(), 0u) << "this test needs root";
  expect_devices_follow_what_is_denied(*group_);
}

TEST_P(ControlGroupTest, KeepsMembersThatWereThereBeforeFromDevices) {
  ASSERT_EQ(::geteuid(), 0u) << "this test needs root";
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  // Tries to open the device until that is refused with EPERM.
  const pid_t pid = start_one([&] {
    const int file = ::open("/dev/zero", O_RDONLY);
    if (file < 0) ::_exit(errno == EPERM ? 0 : 1);
    (void)!::write(pipe[1], "x", 1);
    ::close(file);
  });
  char seen = 0;
  ASSERT_EQ(::read(pipe[0], &seen, 1), 1);  // it is in the group, and could open it
  ::close(pipe[0]);
  std::signal(SIGPIPE, SIG_IGN);
  const Status denied = group_->deny_devices({kZero});
  EXPECT_TRUE(denied) << denied.error().text();
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  ::close(pipe[1]);
}

TEST_P(ControlGroupTest, MakesNoDeviceFileThatIsDenied) {
  ASSERT_EQ(::geteuid(), 0u) << "this test needs root";
  ASSERT_TRUE(group_->deny_devices({kFull}));
  std::string place = "/dev/shm/orrery_node_XXXXXX";
  ASSERT_NE(::mkdtemp(place.data()), nullptr);
  const std::string file = place + "/full";
  const pid_t pid = start_one([&] {
    const int made = ::mknod(file.c_str(), S_IFCHR | 0666, ::makedev(1, 7));
    ::_exit(made == 0 ? 1 : errno == EPERM ? 0 : 2);
  });
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  (void)::unlink(file.c_str());
  (void)::rmdir(place.c_str());
}

TEST(ControlGroupOnAHybridHost, DeniesDevicesInTheUnifiedTreeWhereV1HasNoTreeOfThem) {
  ASSERT_EQ(::geteuid(), 0u) << "this test needs root";
  Result<ControlGroupPlace> place =
      own_control_group({slurp("/proc/self/cgroup"), slurp("/proc/self/mounts")});
  if (!place || place->version != Version::kV1Freezer || place->unified.empty()) {
    GTEST_SKIP() << "NOT RUN HERE: not a hybrid host";
  }
  place->devices.clear();
  const std::string name = "orrery-test-hybrid-" + std::to_string(::getpid());
  auto group = ControlGroup::make(*place, name);
  ASSERT_TRUE(group) << group.error().text();
  expect_devices_follow_what_is_denied(**group);
  group->reset();
  EXPECT_NE(::access((place->unified + "/" + name).c_str(), F_OK), 0);
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
  EXPECT_EQ(hybrid->devices, "");
  EXPECT_EQ(hybrid->unified, "/x/unified/a");
  EXPECT_FALSE(own_control_group({"", ""}));
}

}  // namespace
}  // namespace orrery
