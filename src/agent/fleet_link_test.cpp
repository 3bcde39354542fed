#include "agent/fleet_link.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

constexpr JobId kJob{1};
constexpr AttemptId kId{kJob, 1};

/// A link of two nodes; the test plays their agents.
class FleetLinkTest : public testing::Test {
 protected:
  static AgentIdentity agent(std::uint32_t node) { return {NodeId(node), 1, 1}; }

  template <class What>
  std::vector<What> orders() {
    collect();
    std::vector<What> found;
    for (const Order& order : orders_) {
      if (const auto* one = std::get_if<What>(&order.what)) found.push_back(*one);
    }
    orders_.clear();
    return found;
  }
  template <class What>
  std::vector<What> inputs() {
    collect();
    std::vector<What> found;
    for (const InputKind& input : inputs_) {
      if (const auto* one = std::get_if<What>(&input)) found.push_back(*one);
    }
    inputs_.clear();
    return found;
  }
  void collect() {
    for (ExecutorEffect& effect : link_.take()) {
      if (auto* order = std::get_if<Order>(&effect)) {
        newest_ = order->stamp;
        orders_.push_back(std::move(*order));
      } else {
        inputs_.push_back(std::get<InputKind>(std::move(effect)));
      }
    }
  }

  void beat(std::uint32_t node) {
    link_.deliver({agent(node), 0, Heartbeat{++beats_, now_, {}}}, now_);
    collect();
  }
  void meet(std::uint32_t node) {
    beat(node);
    link_.deliver({agent(node), 0, Hello{newest_, now_, {}}}, now_);
    collect();
  }
  void pass(Duration span) {
    now_ = now_ + span;
    while (link_.next_due() <= now_) link_.advance(link_.next_due());
  }
  void start(std::uint32_t epoch, const std::vector<std::uint32_t>& nodes) {
    LaunchPlan plan;
    for (const std::uint32_t node : nodes) {
      plan.nodes.push_back({.node = NodeId(node), .shares = {{0, 1, {node}, 1.0}}});
    }
    link_.start({kJob, 1, epoch, Duration(), false}, plan, now_);
    collect();
  }
  void say(std::uint32_t node, AttemptReport state) {
    state.token.id = kId;
    state.applied = newest_;
    link_.deliver({agent(node), ++numbers_, std::move(state)}, now_);
    collect();
  }

  Instant now_;
  FleetLink link_{{.cluster = 7, .boots = {0, 0}}, {}, now_};
  OrderStamp newest_;
  std::uint64_t beats_ = 0;
  std::uint64_t numbers_ = 0;
  std::vector<Order> orders_;
  std::vector<InputKind> inputs_;
};

TEST_F(FleetLinkTest, ANodeJoinsWhenItHasSaidWhatItHas) {
  beat(0);
  EXPECT_EQ(orders<Reconcile>().size(), 1);
  EXPECT_TRUE(inputs<NodeJoined>().empty());
  meet(1);
  EXPECT_EQ(inputs<NodeJoined>().size(), 1);
}

TEST_F(FleetLinkTest, ALateDoubleOfAnAnswerIsNotAnAnswer) {
  meet(0);
  (void)inputs<NodeJoined>();
  const AgentIdentity dead{NodeId(0), 9, 1};
  link_.deliver({dead, 0, Hello{newest_, now_, {}}}, now_);
  EXPECT_TRUE(inputs<NodeJoined>().empty());
}

TEST_F(FleetLinkTest, AnAnswerToAnEarlierControllerIsNotAnAnswer) {
  beat(0);
  const Hello late{newest_, now_, {}};
  link_ = FleetLink({.cluster = 7, .term = 2, .boots = {1, 1}}, {}, now_);
  beat(0);
  link_.deliver({agent(0), 0, late}, now_);
  EXPECT_TRUE(inputs<NodeJoined>().empty());
  link_.deliver({agent(0), 0, Hello{newest_, now_, {}}}, now_);
  EXPECT_EQ(inputs<NodeJoined>().size(), 1);
}

TEST_F(FleetLinkTest, NothingIsOrderedBeforeTheNodeIsKnown) {
  start(0, {0});
  EXPECT_TRUE(orders<LaunchRanks>().empty());
  meet(0);
  EXPECT_EQ(orders<LaunchRanks>().size(), 1);
}

TEST_F(FleetLinkTest, RanksAreUpWhenEveryNodeOfTheEpochIs) {
  meet(0);
  meet(1);
  start(0, {0, 1});
  say(0, {.stage = RankStage::kRunning, .up_epoch = 0});
  EXPECT_TRUE(inputs<RanksUp>().empty());
  say(1, {.stage = RankStage::kRunning, .up_epoch = 0});
  EXPECT_EQ(inputs<RanksUp>().size(), 1);
  start(1, {0, 1});
  say(0, {.token = {kId, 1}, .stage = RankStage::kRunning, .up_epoch = 1});
  say(1, {.token = {kId, 1}, .stage = RankStage::kStarting, .up_epoch = 0});
  EXPECT_TRUE(inputs<RanksUp>().empty());
  say(1, {.token = {kId, 1}, .stage = RankStage::kRunning, .up_epoch = 1});
  EXPECT_EQ(inputs<RanksUp>().at(0).epoch, 1);
}

TEST_F(FleetLinkTest, AnAttemptThatANodeNamedTooEarlyStartsAllTheSame) {
  meet(0);
  meet(1);
  say(0, {.stage = RankStage::kRunning});
  EXPECT_EQ(orders<KillRanks>().size(), 1);
  start(0, {0, 1});
  EXPECT_EQ(orders<LaunchRanks>().size(), 2);
  say(0, {.stage = RankStage::kRunning, .up_epoch = 0});
  say(1, {.stage = RankStage::kRunning, .up_epoch = 0});
  EXPECT_EQ(inputs<RanksUp>().size(), 1);
}

TEST_F(FleetLinkTest, AnOrderIsRepeatedWithTheBeatUntilItShowsEffect) {
  meet(0);
  start(0, {0});
  EXPECT_EQ(orders<LaunchRanks>().size(), 1);
  pass(Duration::seconds(1));
  beat(0);
  EXPECT_TRUE(orders<LaunchRanks>().empty());
  pass(Duration::seconds(1));
  beat(0);
  EXPECT_EQ(orders<LaunchRanks>().size(), 1);
  say(0, {.stage = RankStage::kPreparing});
  pass(Duration::seconds(2));
  beat(0);
  EXPECT_TRUE(orders<LaunchRanks>().empty());
}

TEST_F(FleetLinkTest, ANodeThatANewEpochLeavesOutEndsAndIsReportedGone) {
  meet(0);
  meet(1);
  start(0, {0, 1});
  say(0, {.stage = RankStage::kRunning, .up_epoch = 0});
  say(1, {.stage = RankStage::kRunning, .up_epoch = 0});
  (void)orders<LaunchRanks>();
  start(1, {0});
  EXPECT_EQ(orders<EndRanks>().size(), 1);
  say(1, {.token = {kId, 1}, .stage = RankStage::kGone});
  const std::vector<RanksGone> gone = inputs<RanksGone>();
  ASSERT_EQ(gone.size(), 1);
  EXPECT_EQ(gone[0].nodes, (std::vector<NodeId>{NodeId(1)}));
}

TEST_F(FleetLinkTest, ANewClockIsAnOrderToTheNodesOfTheGang) {
  meet(0);
  start(0, {0});
  say(0, {.stage = RankStage::kRunning, .up_epoch = 0});
  (void)orders<LaunchRanks>();
  link_.apply({kJob, 1, 0, 0.7}, now_);
  EXPECT_EQ(orders<LaunchRanks>().at(0).shares.at(0).clock, 0.7);
  link_.apply({kJob, 1, 0, 0.7}, now_);
  EXPECT_TRUE(orders<LaunchRanks>().empty());
}

TEST_F(FleetLinkTest, EndsAtOnceWhatWasNeverSent) {
  start(0, {0, 1});
  link_.stop({kJob, 1, Duration::seconds(30), StopReason::kCancelled}, now_);
  EXPECT_EQ(inputs<RanksGone>().size(), 2);
  EXPECT_EQ(link_.attempts(), 0);
}

TEST_F(FleetLinkTest, KillsWhatControlKnowsNothingOf) {
  meet(0);
  say(0, {.stage = RankStage::kRunning, .up_epoch = 0});
  EXPECT_EQ(orders<KillRanks>().size(), 1);
  say(0, {.stage = RankStage::kGone});
  EXPECT_TRUE(inputs<RanksGone>().empty());
  EXPECT_EQ(link_.attempts(), 0);
}

TEST_F(FleetLinkTest, AFaultIsTakenInOnceHoweverOftenItIsReported) {
  meet(0);
  const HealthFault fault{.layer = FaultLayer::kAccelerator, .evidence = "xid 79"};
  link_.deliver({agent(0), 5, fault}, now_);
  link_.deliver({agent(0), 5, fault}, now_);
  EXPECT_EQ(inputs<NodeFault>().size(), 1);
  EXPECT_EQ(orders<Acknowledge>().size(), 2);
}

TEST_F(FleetLinkTest, RepairsAreOrderedUntilTheyAreReported) {
  meet(0);
  link_.repair({NodeId(0), FaultLayer::kHost}, now_);
  pass(Duration::minutes(1));
  beat(0);
  EXPECT_EQ(orders<MendNode>().size(), 2);
  link_.deliver({agent(0), 5, Mended{}}, now_);
  link_.deliver({agent(0), 5, Mended{}}, now_);
  EXPECT_EQ(inputs<NodeRepaired>().size(), 1);
}

TEST_F(FleetLinkTest, StepsDownWhenAnAgentHasSeenANewerController) {
  link_.deliver({agent(0), 0, Refused{{1, 1}, RefusalReason::kOlderTerm, 4}}, now_);
  EXPECT_EQ(link_.superseded_by(), 4);
}

TEST_F(FleetLinkTest, AControllerThatSleptLongDoesNotBlameTheNodes) {
  meet(0);
  meet(1);
  pass(Duration::seconds(1));
  now_ = now_ + Duration::minutes(10);
  link_.advance(now_);
  EXPECT_TRUE(inputs<NodeHeard>().empty());
  pass(Duration::seconds(32));
  EXPECT_TRUE(inputs<NodeHeard>().empty()) << "they may have to find it again";
  pass(Duration::seconds(1));
  EXPECT_EQ(inputs<NodeHeard>().size(), 2);
}

TEST_F(FleetLinkTest, AControllerThatIsLateAgainAndAgainCountsTheTimeItWasAwake) {
  meet(0);
  // Each due wake-up happens 1.2 s late.
  const Duration late = Duration::milliseconds(1200);
  std::vector<NodeHeard> heard;
  for (int wakes = 1; heard.size() < 2 && wakes < 10; ++wakes) {
    now_ = link_.next_due() + late;
    link_.advance(now_);
    for (const NodeHeard& one : inputs<NodeHeard>()) heard.push_back(one);
    EXPECT_LE(now_ - Instant(), Duration::milliseconds(5500) + late * wakes);
  }
  ASSERT_EQ(heard.size(), 2);
  EXPECT_EQ(heard[0].health, NodeHealth::kSuspect);
  EXPECT_EQ(heard[1].health, NodeHealth::kLost);
}

TEST_F(FleetLinkTest, WhoWasHeardSinceTheStartHasHadItsGrace) {
  pass(Duration::seconds(1));
  meet(0);
  pass(Duration::milliseconds(2500));
  EXPECT_EQ(inputs<NodeHeard>().size(), 1) << "suspect";
  pass(Duration::seconds(3));
  const std::vector<NodeHeard> heard = inputs<NodeHeard>();
  ASSERT_EQ(heard.size(), 1);
  EXPECT_EQ(heard[0].node, NodeId(0));
  EXPECT_EQ(heard[0].health, NodeHealth::kLost);
  pass(Duration::seconds(25));
  EXPECT_TRUE(inputs<NodeHeard>().empty()) << "the other may still be on its way";
  pass(Duration::seconds(4));
  EXPECT_EQ(inputs<NodeHeard>().size(), 2);
}

TEST_F(FleetLinkTest, APartThatIsDoneIsAcknowledgedWhenTheWholeIs) {
  meet(0);
  meet(1);
  start(0, {0, 1});
  const AttemptReport done{
      .token = {kId, 0}, .stage = RankStage::kGone, .end = AttemptEnd{ExitKind::kDone, {}}};
  say(0, done);
  EXPECT_TRUE(orders<Acknowledge>().empty());
  say(1, done);
  EXPECT_EQ(inputs<RanksEnded>().size(), 1);
  EXPECT_EQ(orders<Acknowledge>().size(), 1);
  say(0, done);
  EXPECT_EQ(orders<Acknowledge>().size(), 1) << "said again until it is";
}

TEST_F(FleetLinkTest, AnAgentBlamesNoNodeButItsOwn) {
  meet(0);
  start(0, {0});
  say(0,
      {.token = {kId, 0},
       .stage = RankStage::kGone,
       .end = AttemptEnd{ExitKind::kProgram, {FaultLayer::kHost, NodeId(4'294'967'290), "lie"}}});
  const std::vector<RanksEnded> ended = inputs<RanksEnded>();
  ASSERT_EQ(ended.size(), 1);
  EXPECT_EQ(ended[0].blame.node, NodeId(0));
}

TEST_F(FleetLinkTest, ALaterTermHearsWhenAnEarlierEpochHasLeft) {
  const LaunchPlan plan{.nodes = {{.node = NodeId(0), .shares = {{0, 1, {0}, 1.0}}}}};
  const std::vector<KnownAttempt> known{{kId, 2, JobPhase::kRunning, plan, {NodeId(0), NodeId(1)}}};
  link_ = FleetLink({.cluster = 7, .term = 2, .boots = {1, 1}}, known, now_);
  meet(1);
  std::vector<RanksGone> gone = inputs<RanksGone>();
  ASSERT_EQ(gone.size(), 1) << "an answer that does not name it";
  EXPECT_EQ(gone[0].nodes, std::vector{NodeId(1)});
  EXPECT_EQ(gone[0].epoch, 2);
  beat(0);
  AttemptReport state{.token = {kId, 2}, .stage = RankStage::kRunning, .up_epoch = 2};
  state.shed_epoch = 1;
  link_.deliver({agent(0), 0, Hello{newest_, now_, {{5, state}}}}, now_);
  EXPECT_TRUE(inputs<RanksGone>().empty());
  state.shed_epoch = 2;
  numbers_ = 5;
  say(0, state);
  gone = inputs<RanksGone>();
  ASSERT_EQ(gone.size(), 1);
  EXPECT_EQ(gone[0].epoch, 1);
}

TEST_F(FleetLinkTest, ALaterTermSetsAClockThatWasNeverOrdered) {
  const LaunchPlan plan{.nodes = {{.node = NodeId(0), .shares = {{0, 1, {0}, 0.7}}}}};
  const std::vector<KnownAttempt> known{{kId, 0, JobPhase::kRunning, plan, {}}};
  link_ = FleetLink({.cluster = 7, .term = 2, .boots = {1, 1}}, known, now_);
  beat(0);
  AttemptReport state{.token = {kId, 0}, .stage = RankStage::kRunning, .up_epoch = 0};
  state.clocks = {1};
  link_.deliver({agent(0), 0, Hello{newest_, now_, {{5, state}}}}, now_);
  EXPECT_EQ(orders<LaunchRanks>().at(0).shares.at(0).clock, 0.7);
}

TEST_F(FleetLinkTest, AReportFromBeforeTheNewestLaunchIsNoProofThatItIsGone) {
  const LaunchPlan plan{.nodes = {{.node = NodeId(0), .shares = {{0, 1, {0}, 1.0}}}}};
  const std::vector<KnownAttempt> known{{kId, 0, JobPhase::kStopping, plan}};
  link_ = FleetLink({.cluster = 7, .term = 3, .boots = {1, 1}}, known, now_);
  beat(0);
  const AttemptReport runs{.token = {kId, 0}, .stage = RankStage::kRunning, .applied = {2, 5}};
  link_.deliver({agent(0), 0, Hello{newest_, now_, {{5, runs}}}}, now_);
  AttemptReport gone = runs;
  gone.stage = RankStage::kGone;
  gone.applied = {1, 9};
  link_.deliver({agent(0), 2, gone}, now_);
  EXPECT_TRUE(inputs<RanksGone>().empty());
  gone.applied = {2, 5};
  link_.deliver({agent(0), 6, gone}, now_);
  EXPECT_EQ(inputs<RanksGone>().size(), 1);
}

TEST_F(FleetLinkTest, AReplicaIsReportedOnceForEachChangeAndToEachController) {
  meet(0);
  start(0, {0});
  AttemptReport report{.stage = RankStage::kRunning, .up_epoch = 0};
  report.replica = ReplicaReport{.phase = ReplicaPhase::kLoading};
  say(0, report);
  say(0, report);
  ASSERT_EQ(inputs<ReplicaSeen>().size(), 1u);
  report.replica->phase = ReplicaPhase::kReady;
  say(0, report);
  const std::vector<ReplicaSeen> seen = inputs<ReplicaSeen>();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].job, kJob);
  EXPECT_EQ(seen[0].attempt, 1u);
  EXPECT_EQ(seen[0].report, *report.replica);
}

}  // namespace
}  // namespace orrery
