// Commands beside the ranks of a real keeper, and copies of what ranks write.
#include "tests/end_to_end/keeper_fixture.hpp"

namespace orrery {
namespace {

class KeeperCommandsTest : public KeeperTest {
 protected:
  void start_rank(const std::string& script = "echo up; exec sleep 1000") {
    start(launch(script));
    await_stage(RankStage::kRunning);
    EXPECT_TRUE(agent_->abilities.commands);
  }
  void open(const std::vector<std::string>& command, std::uint64_t id = 1) {
    agent_->send(ExecOpen{.id = id, .gang = 0, .rank = 0, .command = command});
  }
  ExecEnd end() {
    await([&] { return agent_->exec_end.has_value(); });
    return agent_->exec_end.value_or(ExecEnd());
  }
};

TEST_F(KeeperCommandsTest, OutputStopsAtTheWindowUntilItIsTaken) {
  start_rank();
  open({"sh", "-c", "head -c 1000000 /dev/zero; echo done >over"});
  await([&] { return agent_->exec_output.size() >= kExecBytesMax; });
  bool late = false;
  (void)real_->env().timers.call_after(Duration::milliseconds(300), [&] { late = true; });
  await([&] { return late; });
  EXPECT_LE(agent_->exec_output.size(), kExecBytesMax + (std::size_t{32} << 10));
  EXPECT_FALSE(agent_->exec_end);
  std::size_t taken = 0;
  while (!HasFailure() && !agent_->exec_end) {
    const std::size_t there = agent_->exec_output.size();
    agent_->send(ExecInput{.id = 1, .taken = there - std::exchange(taken, there)});
    await([&] { return agent_->exec_end || agent_->exec_output.size() > there; });
  }
  EXPECT_EQ(agent_->exec_output.size(), 1'000'000u);
  EXPECT_EQ(end(), (ExecEnd{1, 0, ""}));
}

TEST_F(KeeperCommandsTest, InputIsToldAsTakenAndItsEndEndsTheReader) {
  start_rank();
  open({"cat"});
  agent_->send(ExecInput{.id = 1, .bytes = "ab"});
  agent_->send(ExecInput{.id = 1, .bytes = "c", .end = true});
  EXPECT_EQ(end(), (ExecEnd{1, 0, ""}));
  EXPECT_EQ(agent_->exec_output, "abc");
  EXPECT_EQ(agent_->exec_taken, 3u);
}

TEST_F(KeeperCommandsTest, ARankWithoutAProcessIsNamedWithThoseThatHaveOne) {
  start_rank();
  agent_->send(ExecOpen{.id = 5, .gang = 0, .rank = 3, .command = {"true"}});
  const ExecEnd refused = end();
  EXPECT_EQ(refused.id, 5u);
  EXPECT_EQ(refused.error, "rank 3 of gang 0 has no process here; there are rank 0 of gang 0");
}

TEST_F(KeeperCommandsTest, TheLastRankTakesTheCommandsWithIt) {
  start_rank("echo up; until [ -e go ]; do sleep 0.05; done");
  open({"sh", "-c", "touch go; exec sleep 1000"});
  const ExecEnd killed = end();
  EXPECT_TRUE(killed.status == 128 + SIGKILL) << killed.status << killed.error;
  await_stage(RankStage::kGone);
  release();
}

TEST_F(KeeperCommandsTest, ACommandEndsWithTheConnectionOfItsAgent) {
  start_rank();
  open({"sh", "-c", "echo $$; exec sleep 1000"});
  await([&] { return agent_->exec_output.ends_with('\n'); });
  const Witness command(std::stoi(agent_->exec_output));
  EXPECT_TRUE(command.alive());
  agent_->disconnect();
  real_->run_until([] { return true; });
  EXPECT_TRUE(command.ends());
}

TEST_F(KeeperCommandsTest, CopiesHoldAllThatRanksWroteAndSoDoesTheLog) {
  KeeperLaunch launch =
      this->launch("echo out $RANK; echo err $RANK >&2; head -c 2000000 /dev/zero; echo over", 2);
  launch.copies = {files_.directory + "/out.%2t", files_.directory + "/err"};
  start(launch);
  await_stage(RankStage::kGone);
  for (const std::string rank : {"0", "1"}) {
    const std::string copy = slurp(files_.directory + "/out.0" + rank);
    EXPECT_EQ(copy.size(), 2'000'000u + std::string("out 0\nover\n").size());
    EXPECT_TRUE(copy.starts_with("out " + rank + "\n"));
  }
  const std::string errors = slurp(files_.directory + "/err");
  EXPECT_TRUE(errors == "err 0\nerr 1\n" || errors == "err 1\nerr 0\n") << errors;
  EXPECT_TRUE(output(1).ends_with("over\n"));
  release();
}

TEST_F(KeeperCommandsTest, AFileThatCannotBeOpenedIsTheProgramsFault) {
  KeeperLaunch launch = this->launch("true");
  launch.copies.output = files_.directory + "/no/such/file";
  start(launch);
  await_stage(RankStage::kGone);
  ASSERT_TRUE(report().end);
  EXPECT_EQ(report().end->blame.layer, FaultLayer::kProgram);
  EXPECT_NE(report().end->blame.evidence.find("cannot write the output to " + files_.directory +
                                              "/no/such/file: No such file or directory"),
            std::string::npos)
      << report().end->blame.evidence;
  release();
}

}  // namespace
}  // namespace orrery
