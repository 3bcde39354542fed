// node/exec/command_relay_test.cpp - which commands run, what reaches either side, and how they
// end.
#include "node/exec/command_relay.hpp"

#include "node/agent/agent_parts_test.hpp"

namespace orrery {
namespace {

constexpr AttemptId kOne{JobId(5), 1};
constexpr AttemptId kOther{JobId(6), 2};

class CommandRelayTest : public AgentPartTest {
 protected:
  void SetUp() override {
    AgentPartTest::SetUp();
    relay_ = std::make_unique<CommandRelay>(*session_, "n3");
  }
  void open(std::uint64_t id, const AttemptId& attempt, KeptKeeper& keeper) {
    relay_->open({attempt, {.id = id, .command = {"sh"}}}, &keeper);
  }
  /// Returns the error of the newest end; empty: there is none.
  [[nodiscard]] std::string refusal() const {
    const std::vector<ExecEnd> ends = channel_.all<ExecEnd>();
    return ends.empty() ? "" : ends.back().error;
  }

  std::unique_ptr<CommandRelay> relay_;
  KeptKeeper keeper_;
  KeptKeeper other_;
};

TEST_F(CommandRelayTest, ACommandAndItsOutputArePassedOn) {
  open(1, kOne, keeper_);
  ASSERT_EQ(keeper_.all<ExecOpen>().size(), 1u);
  EXPECT_EQ(keeper_.all<ExecOpen>()[0].command, std::vector<std::string>{"sh"});
  relay_->input({.id = 1, .bytes = "ls\n"});
  ASSERT_EQ(keeper_.all<ExecInput>().size(), 1u);
  EXPECT_EQ(keeper_.all<ExecInput>()[0].bytes, "ls\n");
  relay_->output({.id = 1, .output = "file\n"});
  relay_->end({.id = 1, .status = 3});
  EXPECT_EQ(channel_.all<ExecOutput>(), (std::vector<ExecOutput>{{.id = 1, .output = "file\n"}}));
  EXPECT_EQ(channel_.all<ExecEnd>(), (std::vector<ExecEnd>{{.id = 1, .status = 3}}));
}

TEST_F(CommandRelayTest, AfterItsEndNothingOfACommandIsPassedOn) {
  open(1, kOne, keeper_);
  relay_->end({.id = 1});
  channel_.sent.clear();
  keeper_.told.clear();
  relay_->input({.id = 1, .bytes = "ls\n"});
  relay_->output({.id = 1, .output = "late"});
  relay_->end({.id = 1});
  EXPECT_TRUE(channel_.sent.empty());
  EXPECT_TRUE(keeper_.told.empty());
}

TEST_F(CommandRelayTest, AClientThatHasGoneHearsNothingMore) {
  open(1, kOne, keeper_);
  relay_->input({.id = 1, .close = true});
  EXPECT_TRUE(keeper_.all<ExecInput>().back().close);
  relay_->output({.id = 1, .output = "late"});
  relay_->end({.id = 1, .status = 129});
  EXPECT_TRUE(channel_.sent.empty());
}

TEST_F(CommandRelayTest, WhatDoesNotRunHereIsRefused) {
  relay_->open({kOne, {.id = 1}}, nullptr);
  EXPECT_EQ(refusal(), "attempt 1 of job 5 does not run on n3");
  keeper_.commands = false;
  open(2, kOne, keeper_);
  EXPECT_NE(refusal().find("does not run commands"), std::string::npos);
  EXPECT_TRUE(keeper_.told.empty());
}

TEST_F(CommandRelayTest, AJobMayHaveHalfOfWhatIsLeft) {
  std::uint64_t id = 0;
  while (refusal().empty() && id < 100) open(++id, kOne, keeper_);
  EXPECT_EQ(keeper_.all<ExecOpen>().size(), CommandRelay::kCommandsMax / 2);
  EXPECT_EQ(refusal(),
            "16 commands run beside ranks of job 5 on n3, and 16 of 32 are left for others: a job "
            "has no more than are left; try again when one has ended");
  channel_.sent.clear();
  while (refusal().empty() && id < 200) open(++id, kOther, other_);
  EXPECT_EQ(other_.all<ExecOpen>().size(), CommandRelay::kCommandsMax / 4);
  channel_.sent.clear();
  relay_->end({.id = 1});
  channel_.sent.clear();
  open(++id, kOther, other_);
  EXPECT_EQ(refusal(), "") << "what has ended is left again";
}

TEST_F(CommandRelayTest, TheEndOfAnAttemptEndsItsCommandsAlone) {
  open(1, kOne, keeper_);
  open(2, kOther, other_);
  open(3, kOne, keeper_);
  relay_->end(kOne, "the attempt has ended");
  EXPECT_EQ(channel_.all<ExecEnd>(),
            (std::vector<ExecEnd>{{.id = 1, .error = "the attempt has ended"},
                                  {.id = 3, .error = "the attempt has ended"}}));
  relay_->input({.id = 2, .bytes = "x"});
  EXPECT_EQ(other_.all<ExecInput>().size(), 1u);
}

TEST_F(CommandRelayTest, WithoutTheControllerKeepersEndAllCommands) {
  open(1, kOne, keeper_);
  open(2, kOther, other_);
  session_->leave();
  relay_->close();
  ASSERT_EQ(keeper_.all<ExecInput>().size(), 1u);
  EXPECT_TRUE(keeper_.all<ExecInput>()[0].close);
  EXPECT_EQ(keeper_.all<ExecInput>()[0].id, 1u);
  ASSERT_EQ(other_.all<ExecInput>().size(), 1u);
  relay_->close();
  EXPECT_EQ(keeper_.all<ExecInput>().size(), 1u) << "each once";
}

}  // namespace
}  // namespace orrery
