// node/agent/agent_directory_test.cpp - who may use a directory, and what its files say to the
// next.
#include "node/agent/agent_directory.hpp"

#include <optional>

#include "node/agent/agent_parts_test.hpp"

namespace orrery {
namespace {

class AgentDirectoryTest : public AgentPartTest {
 protected:
  void SetUp() override {
    AgentPartTest::SetUp();
    place_ = directory_ + "/node";
  }
  [[nodiscard]] Result<AgentDirectory> open() {
    return AgentDirectory::open(real_->env().storage, place_);
  }

  std::string place_;
};

TEST_F(AgentDirectoryTest, EachAgentHasTheNextIncarnation) {
  EXPECT_EQ(open().value().incarnation(), 1u);
  EXPECT_EQ(open().value().incarnation(), 2u);
  EXPECT_EQ(read(place_ + "/incarnation"), "2\n");
}

TEST_F(AgentDirectoryTest, AnIncarnationThatCannotBeReadCountsAsNone) {
  std::filesystem::create_directories(place_);
  ASSERT_TRUE(real_->env().storage.write_file(place_ + "/incarnation", "many\n"));
  EXPECT_EQ(open().value().incarnation(), 1u);
}

TEST_F(AgentDirectoryTest, OneAgentAtATimeHoldsIt) {
  {
    const Result<AgentDirectory> first = open();
    ASSERT_TRUE(first);
    const Result<AgentDirectory> second = open();
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().message, place_ + "/lock: another agent holds it");
    EXPECT_EQ(second.error().kind, ErrorKind::kEnvironment);
  }
  const Result<AgentDirectory> next = open();
  ASSERT_TRUE(next);
  EXPECT_EQ(next->incarnation(), 2u) << "the refused agent is not counted";
}

TEST_F(AgentDirectoryTest, AnAgentWaitsForAnotherThatIsLeaving) {
  std::optional<AgentDirectory> first(open().value());
  int begun = 0;
  Duration waited;
  const LockWait wait{.begin = [&] { ++begun; },
                      .pause =
                          [&](Duration time) {
                            waited += time;
                            if (waited == Duration::seconds(2)) first.reset();
                            return true;
                          }};
  const Result<AgentDirectory> second = AgentDirectory::open(real_->env().storage, place_, wait);
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second->incarnation(), 2u);
  EXPECT_EQ(waited, Duration::seconds(2));
  EXPECT_EQ(begun, 1);
}

TEST_F(AgentDirectoryTest, TheWaitForTheLockEndsAfterAMinuteOrWhenItIsCutShort) {
  const Result<AgentDirectory> first = open();
  ASSERT_TRUE(first);
  Duration waited;
  bool goes_on = true;
  const LockWait wait{.begin = [] {},
                      .pause =
                          [&](Duration time) {
                            waited += time;
                            return goes_on;
                          }};
  const auto refusal = [&] {
    waited = Duration();
    const Result<AgentDirectory> second = AgentDirectory::open(real_->env().storage, place_, wait);
    return second ? std::string() : second.error().message;
  };
  EXPECT_EQ(refusal(), place_ + "/lock: another agent holds it");
  EXPECT_EQ(waited, Duration::seconds(60));
  goes_on = false;
  EXPECT_EQ(refusal(), place_ + "/lock: another agent holds it");
  EXPECT_EQ(waited, Duration::milliseconds(500));
}

TEST_F(AgentDirectoryTest, AFreeLockIsTakenWithoutAWait) {
  int calls = 0;
  const LockWait wait{.begin = [&] { ++calls; }, .pause = [&](Duration) { return ++calls > 0; }};
  EXPECT_TRUE(AgentDirectory::open(real_->env().storage, place_, wait));
  EXPECT_EQ(calls, 0);
}

TEST_F(AgentDirectoryTest, WhatRunsHereIsNotShownToAnotherCluster) {
  Result<AgentDirectory> directory = open();
  ASSERT_TRUE(directory);
  EXPECT_TRUE(directory->join(0xabc, NodeId(3), 5)) << "before the first there is no other cluster";
  EXPECT_TRUE(directory->join(0xabc, NodeId(3), 5));
  const Status other = directory->join(0xdef, NodeId(3), 1);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().message,
            place_ +
                ": what runs here belongs to cluster 0000000000000abc node 3, not to cluster "
                "0000000000000def node 3");
  EXPECT_FALSE(directory->join(0xabc, NodeId(4), 1)) << "another node of the same cluster";
  EXPECT_TRUE(directory->join(0xabc, NodeId(3), 1)) << "a refusal changes nothing";
}

TEST_F(AgentDirectoryTest, AnEmptyNodeMayJoinAnotherCluster) {
  Result<AgentDirectory> directory = open();
  ASSERT_TRUE(directory);
  ASSERT_TRUE(directory->join(0xabc, NodeId(3), 0));
  EXPECT_TRUE(directory->join(0xdef, NodeId(9), 0));
  EXPECT_FALSE(directory->join(0xabc, NodeId(3), 1)) << "now it is of the newer one";
}

TEST_F(AgentDirectoryTest, APathThatSocketsDoNotFitIntoSaysHowLongItMayBe) {
  const std::string longest = directory_ + "/" + std::string(200, 'x');
  const Status refused = check_agent_directory(real_->env().storage, longest);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kInput);
  std::size_t most = 0;
  for (std::size_t size = 1; size <= longest.size(); ++size) {
    if (check_agent_directory(real_->env().storage, longest.substr(0, size))) most = size;
  }
  EXPECT_NE(refused.error().message.find(fmt::format(": at most {} bytes", most)),
            std::string::npos)
      << refused.error().message;
}

TEST_F(AgentDirectoryTest, APathThatIsTooLongIsNotMade) {
  place_ = directory_ + "/" + std::string(200, 'x');
  EXPECT_FALSE(open());
  EXPECT_FALSE(std::filesystem::exists(place_));
}

}  // namespace
}  // namespace orrery
