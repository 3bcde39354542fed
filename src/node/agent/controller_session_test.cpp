// node/agent/controller_session_test.cpp - when a session sends, and whose welcome it accepts.
#include "node/agent/controller_session.hpp"

#include "node/agent/agent_parts_test.hpp"

namespace orrery {
namespace {

class ControllerSessionTest : public ::testing::Test {
 protected:
  void SetUp() override { session_.open({.node = "n3", .incarnation = 4}, events_); }

  [[nodiscard]] Status welcome(std::uint64_t cluster, std::uint32_t node) {
    return session_.accept({.cluster = cluster, .node = NodeId(node)});
  }

  KeptChannel channel_;
  KeptEvents events_;
  ControllerSession session_{channel_};
};

TEST_F(ControllerSessionTest, OnlyAWelcomedStreamTakesMessages) {
  session_.send(ExecEnd{.id = 1});
  EXPECT_TRUE(channel_.sent.empty()) << "the controller has not answered the opening";
  ASSERT_TRUE(welcome(7, 3));
  session_.send(ExecEnd{.id = 2});
  session_.lose();
  session_.send(ExecEnd{.id = 3});
  ASSERT_TRUE(welcome(7, 3));
  session_.send(ExecEnd{.id = 4});
  EXPECT_EQ(channel_.all<ExecEnd>(), (std::vector<ExecEnd>{{.id = 2}, {.id = 4}}));
}

TEST_F(ControllerSessionTest, TheChannelIsOpenedOnceAndItsEventsGoToTheUser) {
  ASSERT_TRUE(welcome(7, 3));
  session_.lose();
  ASSERT_EQ(channel_.openings.size(), 1u);
  EXPECT_EQ(channel_.openings[0].node, "n3");
  EXPECT_EQ(channel_.openings[0].incarnation, 4u);
  EXPECT_EQ(channel_.events, &events_);
}

TEST_F(ControllerSessionTest, AStreamThatIsLeftIsClosedAndTakesNoMessages) {
  ASSERT_TRUE(welcome(7, 3));
  session_.leave();
  session_.send(ExecEnd{.id = 1});
  EXPECT_TRUE(channel_.sent.empty());
  EXPECT_EQ(channel_.events, nullptr);
}

TEST_F(ControllerSessionTest, AllItsStreamsAreOfOneClusterAndNode) {
  EXPECT_FALSE(session_.welcomed());
  ASSERT_TRUE(welcome(7, 3));
  EXPECT_EQ(session_.node(), NodeId(3));
  session_.lose();
  const Status cluster = welcome(8, 3);
  ASSERT_FALSE(cluster);
  EXPECT_EQ(cluster.error().message,
            "the controller takes this agent for node 3 of cluster 0000000000000008; it is node 3 "
            "of cluster 0000000000000007");
  EXPECT_FALSE(welcome(7, 4));
  EXPECT_FALSE(session_.welcomed()) << "nothing is sent to a controller that is mistaken";
  EXPECT_TRUE(welcome(7, 3));
  EXPECT_EQ(session_.node(), NodeId(3));
}

}  // namespace
}  // namespace orrery
