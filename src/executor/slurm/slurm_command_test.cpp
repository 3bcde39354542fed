// executor/slurm/slurm_command_test.cpp - how a program beside the loop ends, and what of its
// output comes back.
#include "executor/slurm/slurm_command.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <memory>

#include "store/backend_test.hpp"

namespace orrery {
namespace {

class SlurmCommandTest : public testing::Test {
 protected:
  [[nodiscard]] static SlurmCommandStart shell(const std::string& script) {
    return {.words = {"/bin/sh", "-c", script}, .timeout = Duration::seconds(60)};
  }
  [[nodiscard]] SlurmCommandEnd run(const SlurmCommandStart& start) {
    std::optional<SlurmCommandEnd> end;
    const SlurmCommand command(*real_, start, [&](SlurmCommandEnd its) { end = std::move(its); });
    EXPECT_FALSE(end) << "not inside the call";
    real_->run_until([&] { return end.has_value(); });
    return *std::move(end);
  }

  std::unique_ptr<RealEnv> real_ = *RealEnv::create();
};

TEST_F(SlurmCommandTest, OutputErrorsAndStatusComeBack) {
  const SlurmCommandEnd end = run(shell("echo out; echo err >&2; exit 3"));
  EXPECT_TRUE(end.started);
  EXPECT_EQ(end.failure, "");
  EXPECT_EQ(end.status, 3);
  EXPECT_EQ(end.output, "out\n");
  EXPECT_EQ(end.errors, "err\n");
}

TEST_F(SlurmCommandTest, InputLargerThanAPipeArrivesWholeAndOutputReturnsIt) {
  SlurmCommandStart start = shell("cat");
  start.input.assign(std::size_t{5} << 20, 'x');
  start.input += "end";
  EXPECT_EQ(run(start).output, start.input);
}

TEST_F(SlurmCommandTest, AProgramThatDoesNotReadItsInputEnds) {
  SlurmCommandStart start = shell("exit 0");
  start.input.assign(std::size_t{1} << 20, 'x');
  EXPECT_EQ(run(start).failure, "");
}

TEST_F(SlurmCommandTest, TheEnvironmentIsWhatIsGiven) {
  SlurmCommandStart start = shell("env");
  start.variables = {"ONE=1", "PATH=/usr/bin:/bin"};
  const std::string output = run(start).output;
  EXPECT_NE(output.find("ONE=1\n"), output.npos);
  EXPECT_EQ(output.find("HOME="), output.npos) << output;
}

TEST_F(SlurmCommandTest, OneThatRunsTooLongIsKilledWithAllItStarted) {
  SlurmCommandStart start = shell("sleep 1000 & echo $!; wait");
  start.timeout = Duration::milliseconds(300);
  const SlurmCommandEnd end = run(start);
  EXPECT_EQ(end.failure, "not done after 300 ms");
  EXPECT_TRUE(end.started);
}

TEST_F(SlurmCommandTest, OneThatPrintsTooMuchIsKilled) {
  SlurmCommandStart start = shell("while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done");
  start.output_max = 1000;
  const SlurmCommandEnd end = run(start);
  EXPECT_EQ(end.failure, "printed more than 1000 bytes");
  EXPECT_LT(end.output.size(), 10u << 20);
}

TEST_F(SlurmCommandTest, MuchOfItsErrorsIsCutOff) {
  const SlurmCommandEnd end =
      run(shell("i=0; while [ $i -lt 9000 ]; do echo yyyyyyyyyyyyyyyyyyyy; i=$((i+1)); done >&2"));
  EXPECT_EQ(end.failure, "");
  EXPECT_EQ(end.errors.size(), kSlurmErrorsMax);
}

TEST_F(SlurmCommandTest, ASignalAndAProgramThatIsNotThereAreFailures) {
  EXPECT_EQ(run(shell("echo 17; kill -9 $$")).failure, "signal 9");
  const SlurmCommandEnd end = run({.words = {"/nowhere/sbatch"}, .timeout = Duration::seconds(9)});
  EXPECT_EQ(end.failure, "cannot run /nowhere/sbatch: No such file or directory");
  EXPECT_FALSE(end.started);
}

TEST_F(SlurmCommandTest, WhatItLeavesBehindDoesNotKeepItFromEnding) {
  EXPECT_EQ(run(shell("sleep 1000 & echo done")).output, "done\n");
}

TEST_F(SlurmCommandTest, OneWhoseOwnerGoesIsKilled) {
  const TestDirectory scratch;
  const std::string pid = scratch.path("pid");
  {
    const SlurmCommand command(*real_, shell("echo $$ > " + pid + "; exec sleep 1000"),
                               [](const SlurmCommandEnd&) { ADD_FAILURE() << "it has no owner"; });
    for (int i = 0; i < 1000 && ::access(pid.c_str(), F_OK) != 0; ++i) ::poll(nullptr, 0, 5);
  }
  real_->env().timers.call_after(Duration::milliseconds(50), [this] { real_->stop(); });
  real_->run();
  EXPECT_NE(std::system(("kill -0 $(cat " + pid +
                         ") 2>/dev/null && ! grep -q 'State:.Z' /proc/$(cat " + pid + ")/status")
                            .c_str()),
            0);
}

}  // namespace
}  // namespace orrery
