// executor/agents/agent_book_test.cpp - one agent for each node: which one stays if two connect.
#include "executor/agents/agent_book.hpp"

#include <gtest/gtest.h>

#include "control/scripted_cluster_test.hpp"

namespace orrery {
namespace {

class Stream final : public AgentSession {
 public:
  void send(const ControllerMessage& /*message*/) override {}
  void close(const Error& /*why*/) override { closed = true; }
  void replace(const Error& /*why*/) override { replaced = true; }

  bool closed = false;
  bool replaced = false;
};

class AgentBookTest : public ::testing::Test {
 protected:
  [[nodiscard]] AgentOpening agent(std::uint64_t boot, std::uint64_t process) const {
    return {.node = cluster_.topology().node_name(node_),
            .address = "10.0.0.1",
            .boot = boot,
            .incarnation = 1,
            .version = "test",
            .inventory = {.accelerator = "h100", .accelerators = 8},
            .process = process,
            .key = {"a", Instant()}};
  }
  static Instant second(double at) { return Instant() + Duration::from_seconds(at); }

  ScriptedCluster cluster_;
  AgentBook book_{cluster_.topology()};
  const NodeId node_{0};
  Stream first_;
  Stream second_;
};

TEST_F(AgentBookTest, AnAgentThatLostItsStreamComesBackAtOnce) {
  ASSERT_TRUE(book_.open(agent(7, 1), first_, second(0)));
  EXPECT_TRUE(book_.open(agent(7, 1), second_, second(0.1)));
  EXPECT_TRUE(first_.closed);
  EXPECT_EQ(book_.close(first_), std::nullopt) << "it is not the node's any more";
  EXPECT_EQ(book_.close(second_), node_);
}

TEST_F(AgentBookTest, AMachineThatBootedAnewWaitsUntilItsOldAgentIsSilent) {
  ASSERT_TRUE(book_.open(agent(7, 1), first_, second(0)));
  const Result<NodeId> early = book_.open(agent(8, 2), second_, second(1));
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().kind, ErrorKind::kEnvironment) << "it may come again";
  EXPECT_TRUE(book_.open(agent(8, 2), second_, second(4)));
  EXPECT_TRUE(first_.closed);
}

TEST_F(AgentBookTest, ACopyOfAnAgentThatLivesIsToldToStayAway) {
  ASSERT_TRUE(book_.open(agent(7, 1), first_, second(0)));
  std::size_t refusals = 0;
  std::optional<Error> last;
  for (double at = 0.5; at < 20; at += 0.5) {
    book_.note(node_, second(at));  // a heartbeat
    const Result<NodeId> copy = book_.open(agent(8, 2), second_, second(at));
    ASSERT_FALSE(copy);
    ++refusals;
    last = copy.error();
    if (last->kind == ErrorKind::kInput) break;
  }
  EXPECT_EQ(last->kind, ErrorKind::kInput) << "for good";
  EXPECT_EQ(refusals, 31u);
  EXPECT_NE(last->message.find("another agent speaks for"), std::string::npos) << last->message;
  EXPECT_FALSE(first_.closed || first_.replaced);
  ASSERT_TRUE(book_.of(node_).refused);
  EXPECT_EQ(book_.of(node_).refused->times, 31u);
}

TEST_F(AgentBookTest, AnotherKeyTakesTheNodeAndTheOldAgentIsTold) {
  ASSERT_TRUE(book_.open(agent(7, 1), first_, second(0)));
  AgentOpening joined = agent(8, 2);
  joined.key.hash = "b";
  EXPECT_TRUE(book_.open(joined, second_, second(0.1)));
  EXPECT_TRUE(first_.replaced);
}

TEST_F(AgentBookTest, NotesOfALongJobOutlastThoseOfManyLaterOnes) {
  constexpr std::uint32_t kMany = 10'001;
  const auto note = [&](std::uint32_t job, std::uint64_t step) {
    book_.note(node_, AttemptNotes{{JobId(job), 1}, {.step = step}, {}, {{0, 1.0}}});
  };
  for (std::uint32_t job = 1; job <= kMany; ++job) {
    note(0, job);
    note(job, 1);
  }
  ASSERT_NE(book_.notes_of(JobId(0)), nullptr);
  EXPECT_EQ(book_.notes_of(JobId(0))->progress.step, kMany);
  EXPECT_EQ(book_.paces_of({JobId(0), 1}).size(), 1U);
  EXPECT_EQ(book_.notes_of(JobId(1)), nullptr);
  EXPECT_TRUE(book_.paces_of({JobId(1), 1}).empty());
}

}  // namespace
}  // namespace orrery
