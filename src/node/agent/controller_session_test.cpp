// node/agent/controller_session_test.cpp - when a session sends, and when it opens its next stream.
#include "node/agent/controller_session.hpp"

#include "base/set_time_test.hpp"
#include "node/agent/agent_parts_test.hpp"

namespace orrery {
namespace {

const Error kLost{ErrorKind::kEnvironment, "connection refused", {}};

class ControllerSessionTest : public ::testing::Test {
 protected:
  void SetUp() override { session_.open({.node = "n3", .incarnation = 4}); }

  [[nodiscard]] Status welcome(std::uint64_t cluster, std::uint32_t node) {
    return session_.accept({.cluster = cluster, .node = NodeId(node)});
  }
  /// Loses the stream; returns the time until the next one is opened.
  [[nodiscard]] Duration lose() {
    const std::size_t before = channel_.openings.size();
    const Instant lost = time_.now;
    session_.reopen(kLost);
    EXPECT_EQ(channel_.openings.size(), before) << "not inside the call";
    while (channel_.openings.size() == before && time_.waiting() > 0) {
      time_.run_until(time_.now + Duration::milliseconds(1));
    }
    return time_.now - lost;
  }

  std::unique_ptr<RealEnv> real_ = RealEnv::create().value();
  SetTime time_;
  SetEntropy entropy_;
  KeptChannel channel_;
  NoChannelEvents events_;
  KeptLines lines_;
  ControllerSession session_{
      {time_, time_, entropy_, real_->env().storage, real_->env().transport, real_->env().inbox},
      channel_,
      Log(lines_),
      events_};
};

TEST_F(ControllerSessionTest, OnlyAWelcomedStreamTakesMessages) {
  session_.send(ExecEnd{.id = 1});
  EXPECT_TRUE(channel_.sent.empty()) << "the controller has not answered the opening";
  ASSERT_TRUE(welcome(7, 3));
  session_.send(ExecEnd{.id = 2});
  (void)lose();
  session_.send(ExecEnd{.id = 3});
  EXPECT_EQ(channel_.openings.size(), 2u);
  ASSERT_TRUE(welcome(7, 3));
  session_.send(ExecEnd{.id = 4});
  EXPECT_EQ(channel_.all<ExecEnd>(), (std::vector<ExecEnd>{{.id = 2}, {.id = 4}}));
}

TEST_F(ControllerSessionTest, AStreamThatIsLeftTakesNoMessagesAndHasNoSuccessor) {
  ASSERT_TRUE(welcome(7, 3));
  session_.leave();
  session_.send(ExecEnd{.id = 1});
  EXPECT_TRUE(channel_.sent.empty());
  EXPECT_EQ(time_.waiting(), 0u);
}

TEST_F(ControllerSessionTest, EachStreamHasTheOpeningOfTheFirst) {
  (void)lose();
  ASSERT_EQ(channel_.openings.size(), 2u);
  EXPECT_EQ(channel_.openings[1].node, "n3");
  EXPECT_EQ(channel_.openings[1].incarnation, 4u);
}

TEST_F(ControllerSessionTest, DelaysDoubleUpToALimitAndHalfOfEachIsRandom) {
  constexpr std::uint64_t kMany = 4'000'000'000'000;  // a multiple of every half, in nanoseconds
  Duration whole = ControllerSession::kBackoffFirst;
  for (int i = 0; i < 8; ++i) {
    const Duration half = Duration::nanoseconds(whole.count_ns() / 2);
    const Duration random = i % 2 == 0 ? Duration() : Duration::milliseconds(7);
    entropy_.drawn = kMany + static_cast<std::uint64_t>(random.count_ns()) - 1;
    EXPECT_EQ(lose(), half + random) << "of " << whole.text();
    whole = std::min(whole * 2, ControllerSession::kBackoffMax);
  }
  EXPECT_EQ(whole, ControllerSession::kBackoffMax);
}

TEST_F(ControllerSessionTest, AWelcomeMakesTheNextDelayShortAgain) {
  for (int i = 0; i < 8; ++i) (void)lose();
  EXPECT_GE(lose() * 2, ControllerSession::kBackoffMax);
  ASSERT_TRUE(welcome(7, 3));
  EXPECT_LE(lose(), ControllerSession::kBackoffFirst);
}

TEST_F(ControllerSessionTest, OfManyFailuresInARowTheFirstIsLogged) {
  (void)lose();
  EXPECT_TRUE(lines_.has("controller out of reach why=\"connection refused\"")) << lines_.text;
  lines_.text.clear();
  (void)lose();
  (void)lose();
  EXPECT_EQ(lines_.text, "");
  ASSERT_TRUE(welcome(7, 3));
  (void)lose();
  EXPECT_TRUE(lines_.has("controller out of reach")) << "it was in reach between";
}

TEST_F(ControllerSessionTest, AllItsStreamsAreOfOneClusterAndNode) {
  EXPECT_FALSE(session_.welcomed());
  ASSERT_TRUE(welcome(7, 3));
  EXPECT_EQ(session_.node(), NodeId(3));
  (void)lose();
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

TEST_F(ControllerSessionTest, ASessionThatEndsOpensNoStreamAnyMore) {
  {
    ControllerSession session(
        {time_, time_, entropy_, real_->env().storage, real_->env().transport, real_->env().inbox},
        channel_, Log(lines_), events_);
    session.reopen(kLost);
    EXPECT_EQ(time_.waiting(), 1u);
  }
  EXPECT_EQ(time_.waiting(), 0u);
}

}  // namespace
}  // namespace orrery
