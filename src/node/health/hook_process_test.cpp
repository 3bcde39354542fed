// node/health/hook_process_test.cpp - how the operator's programs end, and that nothing of them
// stays.
#include "node/health/hook_process.hpp"

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

TEST_F(HookProcessTest, AHookThatIsDestroyedEndsWithoutAWord) {
  auto hook = start(shell("echo begun >" + directory_ + "/begun; exec sleep 600"));
  hook.reset();
  EXPECT_EQ(run(shell("exit 0")), "") << "another hook's end is the only one";
  EXPECT_TRUE(ended_.empty());
}

}  // namespace
}  // namespace orrery
