// node/health/hook_process_test.cpp - how the operator's programs end, and that nothing of them
// stays.
#include "node/health/hook_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "node/agent/agent_parts_test.hpp"

namespace orrery {
namespace {

constexpr Duration kLong = Duration::seconds(600);

class HookProcessTest : public AgentPartTest {
 protected:
  [[nodiscard]] std::unique_ptr<HookProcess> start(const HookStart& hook) {
    return std::make_unique<HookProcess>(
        *real_, hook, [this](const std::string& failure) { ended_.push_back(failure); });
  }
  /// Runs a command to its end; returns how it ended.
  [[nodiscard]] std::string run(const HookStart& hook) {
    const auto process = start(hook);
    EXPECT_TRUE(ended_.empty()) << "not inside the call";
    await([&] { return !ended_.empty(); });
    return std::exchange(ended_, {}).front();
  }
  [[nodiscard]] static HookStart shell(const std::string& script) {
    return {{"/bin/sh", "-c", script}, {}, kLong};
  }

  std::vector<std::string> ended_;
};

TEST_F(HookProcessTest, ExitStatusZeroIsNoFailure) {
  EXPECT_EQ(run(shell("echo all is well")), "");
}

TEST_F(HookProcessTest, AFailureSaysItsStatusAndTheEndOfTheOutput) {
  EXPECT_EQ(run(shell("echo one; echo two >&2; exit 3")), "exit status 3: one?two");
  EXPECT_EQ(run(shell("exit 4")), "exit status 4");
  EXPECT_EQ(run(shell("kill -9 $$")), "signal 9");
}

TEST_F(HookProcessTest, OfMuchOutputTheEndIsKept) {
  const std::string failure = run(
      shell("i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; echo last; exit 1"));
  EXPECT_NE(failure.find("last"), std::string::npos) << failure;
  EXPECT_LT(failure.size(), 1000u);
}

TEST_F(HookProcessTest, AProgramThatIsNotThereIsAFailure) {
  EXPECT_EQ(run({{"/nowhere/check"}, {}, kLong}),
            "cannot run /nowhere/check: No such file or directory");
}

TEST_F(HookProcessTest, VariablesAreAddedToItsEnvironment) {
  EXPECT_EQ(
      run({{"/bin/sh", "-c", "[ \"$ORRERY_JOB:$PATH\" = \"train:$PATH\" ] && [ -n \"$PATH\" ]"},
           {{"ORRERY_JOB", "train"}},
           kLong}),
      "");
}

TEST_F(HookProcessTest, AProgramThatTakesTooLongIsKilled) {
  EXPECT_EQ(run({{"/bin/sh", "-c", "exec sleep 600"}, {}, Duration::milliseconds(20)}),
            "not done after 20 ms");
}

TEST_F(HookProcessTest, WhatItLeftBehindIsKilledWithIt) {
  const std::string pipe = directory_ + "/pipe";
  // The child that is left holds the pipe's other end open, so the reader ends only with it.
  EXPECT_EQ(run(shell("mkfifo " + pipe + "; sleep 600 <>" + pipe + " & exit 0")), "");
  EXPECT_EQ(run(shell("cat " + pipe + " & reader=$!; : >" + pipe + "; wait $reader")), "");
}

TEST_F(HookProcessTest, AHookThatIsDestroyedIsKilledAndItsEndIsNotReported) {
  constexpr int kPatienceMs = 60'000;
  const std::string pipe = directory_ + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const FileDescriptor reading(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  auto hook = start(shell("exec >" + pipe + "; echo begun; exec sleep 600"));
  pollfd ready{.fd = reading.get(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&ready, 1, kPatienceMs), 1);
  std::array<char, 16> words{};
  ASSERT_EQ(::read(reading.get(), words.data(), words.size()), 6) << "it has begun";
  hook.reset();
  ASSERT_EQ(::poll(&ready, 1, kPatienceMs), 1) << "no process of it holds the pipe any more";
  EXPECT_EQ(::read(reading.get(), words.data(), words.size()), 0);
  const auto other = start(shell("exit 0"));
  await([&] { return !ended_.empty(); });
  EXPECT_EQ(ended_, std::vector<std::string>{""}) << "the end of the other one alone";
}

}  // namespace
}  // namespace orrery
