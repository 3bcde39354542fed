// executor/agents/command_book_test.cpp - where the output of a command goes, and when it ends.
#include "executor/agents/command_book.hpp"

#include <gtest/gtest.h>

#include "base/system/real_env.hpp"
#include "control/scripted_cluster_test.hpp"

namespace orrery {
namespace {

class CommandStream final : public AgentSession {
 public:
  void send(const ControllerMessage& message) override { sent.push_back(message); }
  void close(const Error&) override {}
  std::vector<ControllerMessage> sent;
};

class CommandBookTest : public ::testing::Test {
 protected:
  enum class Release { kOlder, kThis };
  void connect(Release release = Release::kThis) {
    AgentOpening opening{.node = cluster_.topology().node_name(node_),
                         .address = "10.0.0.1",
                         .boot = 7,
                         .incarnation = 1,
                         .version = "0.9",
                         .inventory = {.accelerator = "h100", .accelerators = 8},
                         .process = 1,
                         .key = {"a", Instant()}};
    opening.runs_commands = release == Release::kThis;
    ASSERT_TRUE(agents_.open(opening, stream_, Instant()));
  }
  CommandBook::Hears hears() {
    return {[this](const ExecOutput& output) { heard_ += output.output; },
            [this](const ExecEnd& end) { ends_.push_back(end); }};
  }
  static AttemptExecOpen command() {
    AttemptExecOpen command;
    command.attempt = {JobId(3), 1};
    command.open.command = {"true"};
    return command;
  }

  ScriptedCluster cluster_;
  AgentBook agents_{cluster_.topology()};
  RealEntropy entropy_;
  CommandBook book_{agents_, entropy_};
  const NodeId node_{0};
  CommandStream stream_;
  std::string heard_;
  std::vector<ExecEnd> ends_;
};

TEST_F(CommandBookTest, ACommandIsHeardFromItsNodeAloneUntilItsEnd) {
  connect();
  const std::uint64_t id = book_.open(node_, command(), hears()).value();
  ASSERT_EQ(stream_.sent.size(), 1u);
  EXPECT_EQ(std::get<AttemptExecOpen>(stream_.sent[0]).open.id, id);
  book_.hear(NodeId(1), ExecOutput{.id = id, .output = "forged", .errors = {}});
  book_.hear(node_, ExecOutput{.id = id, .output = "said", .errors = {}});
  book_.hear(NodeId(1), ExecEnd{.id = id, .status = 9, .error = {}});
  book_.hear(node_, ExecEnd{.id = id, .status = 3, .error = {}});
  book_.hear(node_, ExecEnd{.id = id, .status = 4, .error = {}});
  EXPECT_EQ(heard_, "said");
  ASSERT_EQ(ends_.size(), 1u);
  EXPECT_EQ(ends_[0].status, 3u);
}

TEST_F(CommandBookTest, TheLossOfTheAgentEndsItsCommands) {
  connect();
  (void)book_.open(node_, command(), hears()).value();
  book_.lose(NodeId(1), "node1");
  EXPECT_TRUE(ends_.empty());
  book_.lose(node_, "node0");
  ASSERT_EQ(ends_.size(), 1u);
  EXPECT_EQ(ends_[0].error, "the agent of node0 was lost, and the command with it");
}

TEST_F(CommandBookTest, ACommandThatIsClosedIsToldToItsNodeAndHeardNoMore) {
  connect();
  const std::uint64_t id = book_.open(node_, command(), hears()).value();
  book_.close(id);
  EXPECT_TRUE(std::get<ExecInput>(stream_.sent.back()).close);
  book_.hear(node_, ExecEnd{.id = id, .status = 129, .error = {}});
  EXPECT_TRUE(ends_.empty());
}

TEST_F(CommandBookTest, AnAgentThatIsAwayOrOlderIsNamed) {
  const auto away = book_.open(node_, command(), hears());
  ASSERT_FALSE(away);
  EXPECT_NE(away.error().message.find("not connected"), std::string::npos);
  connect(Release::kOlder);
  const auto older = book_.open(node_, command(), hears());
  ASSERT_FALSE(older);
  EXPECT_NE(older.error().message.find("release 0.9, which runs no commands"), std::string::npos)
      << older.error().message;
  EXPECT_TRUE(stream_.sent.empty());
}

}  // namespace
}  // namespace orrery
