// node/controllers/controller_channels_test.cpp - which of several controllers an agent hears, what
// a change of the leader looks like, and when streams are opened again. Time is virtual.
#include "node/controllers/controller_channels.hpp"

#include "base/numbers/rng.hpp"
#include "base/set_time_test.hpp"
#include "node/agent/agent_parts_test.hpp"

namespace orrery {
namespace {

using Heard = std::vector<std::string>;

const Error kLost{ErrorKind::kEnvironment, "connection refused", {}};
const Error kRefused{ErrorKind::kInput, "no such node", {}};

/// Each controller welcomes the agent as a node of its own number, so that a test sees which one
/// speaks.
class ControllerChannelsTest : public ::testing::Test {
 protected:
  void open(std::size_t controllers) {
    std::vector<ControllerChannels::Controller> all;
    for (std::size_t i = 0; i < controllers; ++i) {
      members_.push_back(std::make_unique<KeptChannel>());
      all.push_back({fmt::format("c{}:7000", i), *members_[i]});
    }
    channels_ =
        std::make_unique<ControllerChannels>(Env{time_, time_, entropy_, real_->env().storage,
                                                 real_->env().transport, real_->env().inbox},
                                             Log(lines_), all);
    channels_->open({.node = "n3", .incarnation = 4}, user_);
  }
  void welcome(std::size_t controller) {
    members_[controller]->events->on_welcome(
        {.node = NodeId(static_cast<std::uint32_t>(controller))});
  }
  void lose(std::size_t controller, const Error& why = kLost) {
    ChannelEvents& events = *std::exchange(members_[controller]->events, nullptr);
    events.on_lost(why);
  }
  void pass(Duration time) { time_.run_until(time_.now + time); }
  /// Loses a stream; returns the time until the next one is opened.
  [[nodiscard]] Duration delay_after_loss(std::size_t controller) {
    const Instant lost = time_.now;
    lose(controller);
    EXPECT_FALSE(is_open(controller)) << "not inside the call";
    while (!is_open(controller) && time_.waiting() > 0) pass(Duration::milliseconds(1));
    return time_.now - lost;
  }
  [[nodiscard]] bool is_open(std::size_t controller) const {
    return members_[controller]->events != nullptr;
  }
  [[nodiscard]] Heard heard() { return std::exchange(user_.heard, {}); }

  std::unique_ptr<RealEnv> real_ = RealEnv::create().value();
  SetTime time_;
  SetEntropy entropy_;
  KeptLines lines_;
  KeptEvents user_;
  std::vector<std::unique_ptr<KeptChannel>> members_;
  std::unique_ptr<ControllerChannels> channels_;
};

TEST_F(ControllerChannelsTest, EachControllerGetsTheOpeningAndTheFirstWelcomeIsPresented) {
  open(3);
  for (const auto& member : members_) {
    ASSERT_EQ(member->openings.size(), 1u);
    EXPECT_EQ(member->openings[0].node, "n3");
    EXPECT_EQ(member->openings[0].incarnation, 4u);
  }
  EXPECT_EQ(heard(), Heard());
  welcome(1);
  EXPECT_EQ(heard(), Heard{"welcome 1"});
  EXPECT_TRUE(lines_.has("controller leads controller=\"c1:7000\"")) << lines_.text;
  members_[1]->events->on_order({});
  members_[1]->events->on_log_question({});
  members_[1]->events->on_burn_in();
  members_[1]->events->on_command({});
  members_[1]->events->on_command_input({});
  EXPECT_EQ(heard(), (Heard{"order", "question", "burn-in", "command", "input"}));
}

TEST_F(ControllerChannelsTest, OnlyThePresentedStreamTakesMessages) {
  open(2);
  channels_->send(ExecEnd{.id = 1});
  welcome(1);
  channels_->send(ExecEnd{.id = 2});
  lose(1);
  channels_->send(ExecEnd{.id = 3});
  welcome(0);
  channels_->send(ExecEnd{.id = 4});
  EXPECT_EQ(members_[0]->all<ExecEnd>(), (std::vector<ExecEnd>{{.id = 4}}));
  EXPECT_EQ(members_[1]->all<ExecEnd>(), (std::vector<ExecEnd>{{.id = 2}}));
}

TEST_F(ControllerChannelsTest, AStandbyThatWelcomesAfterTheLossIsPresentedAtOnce) {
  open(2);
  welcome(0);
  lose(0);
  EXPECT_EQ(heard(), (Heard{"welcome 0", "lost: connection refused"}));
  ASSERT_TRUE(is_open(1)) << "its stream was warm";
  const Instant before = time_.now;
  welcome(1);
  EXPECT_EQ(heard(), Heard{"welcome 1"});
  EXPECT_EQ(time_.now, before);
  EXPECT_EQ(members_[1]->openings.size(), 1u);
  pass(ControllerChannels::kBackoffFirst);
  EXPECT_TRUE(is_open(0)) << "the other one is a standby now";
  EXPECT_EQ(heard(), Heard());
}

TEST_F(ControllerChannelsTest, TheNewerWelcomeWinsAndTheOlderStreamIsNotHeardAnyMore) {
  open(2);
  welcome(0);
  welcome(1);
  EXPECT_EQ(heard(),
            (Heard{"welcome 0", "lost: the controller at c1:7000 leads now", "welcome 1"}));
  EXPECT_EQ(user_.lost, std::vector<ErrorKind>{ErrorKind::kEnvironment});
  members_[0]->events->on_order({});
  members_[0]->events->on_command({});
  lose(0);
  EXPECT_EQ(heard(), Heard());
  members_[1]->events->on_order({});
  EXPECT_EQ(heard(), Heard{"order"});
}

TEST_F(ControllerChannelsTest, AfterALateWelcomeOfAFormerLeaderTheNewLeaderIsPresentedAgain) {
  open(3);
  welcome(1);
  welcome(2);
  welcome(0);  // The former leader's answer was late; it ends now.
  (void)heard();
  lose(0);
  EXPECT_EQ(heard(), (Heard{"lost: connection refused", "welcome 2"}));
  lose(2);
  EXPECT_EQ(heard(), (Heard{"lost: connection refused", "welcome 1"}));
  lose(1);
  EXPECT_EQ(heard(), Heard{"lost: connection refused"});
}

TEST_F(ControllerChannelsTest, ARefusalByOneControllerDoesNotEndTheAgent) {
  open(2);
  lose(1, kRefused);
  EXPECT_EQ(heard(), Heard()) << "the other one has not answered";
  EXPECT_TRUE(lines_.has("controller out of reach controller=\"c1:7000\" why=\"no such node\""))
      << lines_.text;
  welcome(0);
  lose(0, kRefused);
  EXPECT_EQ(heard(), (Heard{"welcome 0", "lost: no such node"}));
  EXPECT_EQ(user_.lost, std::vector<ErrorKind>{ErrorKind::kEnvironment})
      << "the refusal by the other one is older than the welcome";
}

TEST_F(ControllerChannelsTest, ARefusalByAllIsReportedWithEachReason) {
  open(2);
  lose(0, kRefused);
  pass(ControllerChannels::kBackoffFirst);
  EXPECT_EQ(members_[0]->openings.size(), 2u) << "it may change its mind";
  lose(1);
  EXPECT_EQ(heard(), Heard());
  pass(ControllerChannels::kBackoffFirst);
  lose(1, {ErrorKind::kInput, "a foreign certificate", {}});
  EXPECT_EQ(heard(), Heard{"lost: c0:7000: no such node; c1:7000: a foreign certificate"});
  EXPECT_EQ(user_.lost, std::vector<ErrorKind>{ErrorKind::kInput});
}

TEST_F(ControllerChannelsTest, TheRefusalByASingleControllerIsItsOwnError) {
  open(1);
  lose(0, kRefused);
  EXPECT_EQ(heard(), Heard{"lost: no such node"});
  EXPECT_EQ(user_.lost, std::vector<ErrorKind>{ErrorKind::kInput});
  lines_.text.clear();
  pass(ControllerChannels::kBackoffMax);
  welcome(0);
  EXPECT_EQ(heard(), Heard{"welcome 0"});
  EXPECT_EQ(lines_.text, "") << "there is no other controller to lead";
}

TEST_F(ControllerChannelsTest, AnotherAgentOnTheNodeEndsAllStreams) {
  const Error replaced{ErrorKind::kInfeasible, "another agent speaks for the node now", {}};
  open(2);
  welcome(0);
  lose(1, replaced);
  EXPECT_EQ(heard(), Heard{"welcome 0"}) << "the leader has not said so";
  pass(ControllerChannels::kBackoffFirst);
  EXPECT_TRUE(is_open(1));
  lose(0, replaced);
  EXPECT_EQ(heard(), Heard{"lost: another agent speaks for the node now"});
  EXPECT_EQ(user_.lost, std::vector<ErrorKind>{ErrorKind::kInfeasible});
  EXPECT_FALSE(is_open(1));
  EXPECT_EQ(time_.waiting(), 0u);
}

TEST_F(ControllerChannelsTest, AUserThatClosesTheStreamsInsideAnEventHearsNothingMore) {
  open(2);
  welcome(0);
  user_.during_loss = [this] { channels_->close(); };
  welcome(1);
  EXPECT_EQ(heard(), (Heard{"welcome 0", "lost: the controller at c1:7000 leads now"}));
  EXPECT_FALSE(is_open(0) || is_open(1));
  EXPECT_EQ(time_.waiting(), 0u);
  channels_->send(ExecEnd{.id = 1});
  EXPECT_TRUE(members_[0]->sent.empty() && members_[1]->sent.empty());
}

TEST_F(ControllerChannelsTest, StreamsThatAreClosedAreNotOpenedAgain) {
  open(2);
  lose(0);
  EXPECT_EQ(time_.waiting(), 1u);
  channels_->close();
  EXPECT_EQ(time_.waiting(), 0u);
  EXPECT_FALSE(is_open(1));
}

TEST_F(ControllerChannelsTest, ChannelsThatEndOpenNoStreamAnyMore) {
  open(2);
  lose(0);
  lose(1);
  EXPECT_EQ(time_.waiting(), 2u);
  channels_.reset();
  EXPECT_EQ(time_.waiting(), 0u);
}

// --- When a stream is opened again --------------------------------------------------------------

TEST_F(ControllerChannelsTest, DelaysDoubleUpToALimitAndHalfOfEachIsRandom) {
  constexpr std::uint64_t kMany = 4'000'000'000'000;  // a multiple of every half, in nanoseconds
  open(1);
  Duration whole = ControllerChannels::kBackoffFirst;
  for (int i = 0; i < 8; ++i) {
    const Duration half = Duration::nanoseconds(whole.count_ns() / 2);
    const Duration random = i % 2 == 0 ? Duration() : Duration::milliseconds(7);
    entropy_.drawn = kMany + static_cast<std::uint64_t>(random.count_ns()) - 1;
    EXPECT_EQ(delay_after_loss(0), half + random) << "of " << whole.text();
    whole = std::min(whole * 2, ControllerChannels::kBackoffMax);
  }
  EXPECT_EQ(whole, ControllerChannels::kBackoffMax);
}

TEST_F(ControllerChannelsTest, EachControllerHasDelaysOfItsOwn) {
  open(2);
  for (int i = 0; i < 8; ++i) (void)delay_after_loss(0);
  EXPECT_GE(delay_after_loss(0) * 2, ControllerChannels::kBackoffMax);
  EXPECT_EQ(members_[1]->openings.size(), 1u);
  EXPECT_LE(delay_after_loss(1), ControllerChannels::kBackoffFirst);
  EXPECT_EQ(heard(), Heard()) << "none was presented";
}

TEST_F(ControllerChannelsTest, AWelcomeOrAStreamThatLastsMakesTheNextDelayShortAgain) {
  open(1);
  for (int i = 0; i < 8; ++i) (void)delay_after_loss(0);
  EXPECT_GE(delay_after_loss(0) * 2, ControllerChannels::kBackoffMax);
  welcome(0);
  EXPECT_LE(delay_after_loss(0), ControllerChannels::kBackoffFirst);
  for (int i = 0; i < 8; ++i) (void)delay_after_loss(0);
  pass(ControllerChannels::kLasting);
  EXPECT_LE(delay_after_loss(0), ControllerChannels::kBackoffFirst) << "a standby had accepted it";
}

TEST_F(ControllerChannelsTest, OfManyFailuresInARowTheFirstIsLogged) {
  open(1);
  (void)delay_after_loss(0);
  EXPECT_TRUE(
      lines_.has("controller out of reach controller=\"c0:7000\" why=\"connection refused\""))
      << lines_.text;
  lines_.text.clear();
  (void)delay_after_loss(0);
  (void)delay_after_loss(0);
  EXPECT_EQ(lines_.text, "");
  welcome(0);
  (void)delay_after_loss(0);
  EXPECT_TRUE(lines_.has("controller out of reach")) << "it was in reach between";
}

// --- Any order of events ------------------------------------------------------------------------

/// Holds the user's view of the streams beside them: what it may hear next follows from it.
TEST_F(ControllerChannelsTest, AnyOrderOfEventsKeepsWelcomesAndLossesInTurn) {
  constexpr std::uint64_t kSeed = 20'261'128;
  constexpr int kSteps = 5'000;
  Rng rng(kSeed);
  open(3);
  std::vector<std::size_t> welcomed;  // open streams, the newest welcome last
  bool presented = false;
  for (int step = 0; step < kSteps; ++step) {
    const std::size_t at = rng.below(3);
    if (!is_open(at)) {
      pass(Duration::milliseconds(static_cast<std::int64_t>(rng.below(3'000))));
      continue;
    }
    const bool fresh = std::ranges::find(welcomed, at) == welcomed.end();
    if (fresh && rng.below(2) == 0) {
      welcome(at);
      welcomed.push_back(at);
    } else {
      lose(at, rng.below(4) == 0 ? kRefused : kLost);
      std::erase(welcomed, at);
    }
    for (const std::string& each : heard()) {
      const bool is_welcome = each.starts_with("welcome");
      // A refusal by all is reported also where nothing is presented.
      if (is_welcome) ASSERT_FALSE(presented) << "seed " << kSeed << " step " << step;
      presented = is_welcome;
    }
    ASSERT_EQ(presented, !welcomed.empty()) << "seed " << kSeed << " step " << step;
    for (const auto& member : members_) member->sent.clear();
    channels_->send(ExecEnd{.id = 1});
    for (std::size_t i = 0; i < members_.size(); ++i) {
      const bool takes = presented && welcomed.back() == i;
      ASSERT_EQ(members_[i]->sent.size(), takes ? 1u : 0u) << "seed " << kSeed << " step " << step;
    }
  }
}

}  // namespace
}  // namespace orrery
