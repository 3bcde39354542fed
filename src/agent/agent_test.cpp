#include "agent/agent.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

constexpr AttemptId kId{JobId(1), 2};
constexpr AgentIdentity kMe{NodeId(3), 11, 1};

Order order(OrderStamp stamp, OrderKind what) { return {7, stamp, kMe, std::move(what)}; }

LaunchRanks launch(const AttemptId& id) {
  LaunchRanks ranks{.token = {id, 0}, .shares = {}, .delay = {}};
  ranks.shares.push_back({.devices = 1, .ranks = {0}});
  return ranks;
}

template <class Effect>
std::vector<Effect> effects(Agent& agent) {
  std::vector<Effect> found;
  for (const AgentEffect& effect : agent.take()) {
    if (const auto* one = std::get_if<Effect>(&effect)) found.push_back(*one);
  }
  return found;
}

template <class What>
std::vector<What> reports(Agent& agent) {
  std::vector<What> found;
  for (const Report& report : effects<Report>(agent)) {
    if (const auto* one = std::get_if<What>(&report.what)) found.push_back(*one);
  }
  return found;
}

RefusalReason refused(Agent& agent) {
  const std::vector<Refused> all = reports<Refused>(agent);
  EXPECT_EQ(all.size(), 1);
  return all.empty() ? RefusalReason::kOtherCluster : all.front().why;
}

Agent fresh() { return Agent({.cluster = 7, .identity = kMe}, {}, Instant()); }

TEST(Agent, BeatsEverySecond) {
  Agent agent = fresh();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(agent.next_due(), Instant() + Duration::seconds(i));
    agent.on_timer(agent.next_due());
    EXPECT_EQ(reports<Heartbeat>(agent).size(), 1);
  }
}

TEST(Agent, StartsAKeeperOnceHoweverOftenItIsTold) {
  Agent agent = fresh();
  agent.on_order(order({1, 5}, launch(kId)), Instant());
  EXPECT_EQ(effects<StartKeeper>(agent).size(), 1);
  agent.on_order(order({1, 5}, launch(kId)), Instant());
  agent.on_order(order({1, 6}, launch(kId)), Instant());
  EXPECT_TRUE(effects<StartKeeper>(agent).empty());
}

TEST(Agent, RefusesWhatIsNotForItOrTooOld) {
  Agent agent = fresh();
  agent.on_order(order({2, 9}, Reconcile{}), Instant());
  (void)agent.take();
  Order other = order({2, 10}, launch(kId));
  other.cluster = 8;
  agent.on_order(other, Instant());
  EXPECT_EQ(refused(agent), RefusalReason::kOtherCluster);
  agent.on_order(order({1, 99}, launch(kId)), Instant());
  EXPECT_EQ(refused(agent), RefusalReason::kOlderTerm);
  agent.on_order(order({2, 8}, launch(kId)), Instant());
  EXPECT_EQ(refused(agent), RefusalReason::kOlderOrder);
  Order predecessor = order({2, 10}, launch(kId));
  predecessor.to.incarnation = 0;
  agent.on_order(predecessor, Instant());
  EXPECT_EQ(refused(agent), RefusalReason::kOtherAgent);
  agent.on_order(order({2, 10}, launch(kId)), Instant() + Duration::hours(25));
  EXPECT_EQ(refused(agent), RefusalReason::kLeaseOver);
}

TEST(Agent, RefusesAnOlderAttemptAndKillsOneBeforeANewerStarts) {
  Agent agent = fresh();
  agent.on_order(order({1, 1}, launch(kId)), Instant());
  (void)agent.take();
  agent.on_order(order({1, 2}, launch({kId.job, 1})), Instant());
  EXPECT_EQ(refused(agent), RefusalReason::kOlderAttempt);
  agent.on_order(order({1, 3}, launch({kId.job, 3})), Instant());
  const std::vector<AgentEffect> all = agent.take();
  ASSERT_EQ(all.size(), 2);
  EXPECT_EQ(std::get<TellKeeper>(all[0]).id, kId);
  EXPECT_EQ(std::get<Refused>(std::get<Report>(all[1]).what).why, RefusalReason::kNotGone);
}

TEST(Agent, AnswersThatNothingIsThereWhenToldToEndWhatItDoesNotHave) {
  Agent agent = fresh();
  agent.on_order(order({1, 4}, EndRanks{{kId, 0}, Duration()}), Instant());
  const std::vector<AttemptReport> states = reports<AttemptReport>(agent);
  ASSERT_EQ(states.size(), 1);
  EXPECT_EQ(states[0].stage, RankStage::kGone);
  EXPECT_EQ(states[0].applied, (OrderStamp{1, 4}));
  agent.on_order(order({1, 3}, launch(kId)), Instant());
  EXPECT_EQ(refused(agent), RefusalReason::kOlderOrder) << "or its word would not hold";
}

TEST(Agent, RepeatsAReportUntilItIsAcknowledgedAndThenLetsTheKeeperGo) {
  Agent agent = fresh();
  agent.on_order(order({1, 1}, launch(kId)), Instant());
  AttemptReport gone{.token = {kId, 0}, .stage = RankStage::kGone, .end = AttemptEnd{}};
  agent.on_keeper_report(gone, Instant());
  (void)agent.take();
  std::uint64_t number = 0;
  for (int second = 0; second < 9; ++second) {
    agent.on_timer(Instant() + Duration::seconds(second));
    for (const Report& report : effects<Report>(agent)) {
      if (std::holds_alternative<AttemptReport>(report.what)) number = report.number;
    }
  }
  ASSERT_NE(number, 0);
  agent.on_order(order({1, 5}, Acknowledge{number}), Instant());
  ASSERT_EQ(effects<TellKeeper>(agent).size(), 1);
  agent.on_order(order({1, 4}, launch(kId)), Instant());
  EXPECT_EQ(refused(agent), RefusalReason::kOlderOrder) << "it must not come back";
  agent.on_keeper_exit(kId, Instant());
  agent.on_order(order({1, 6}, Reconcile{}), Instant());
  EXPECT_TRUE(reports<Hello>(agent).at(0).attempts.empty());
}

TEST(Agent, AKeeperThatDiesIsAFaultOfTheHost) {
  Agent agent = fresh();
  agent.on_order(order({1, 1}, launch(kId)), Instant());
  agent.on_keeper_exit(kId, Instant());
  const std::vector<AttemptReport> states = reports<AttemptReport>(agent);
  ASSERT_EQ(states.size(), 1);
  EXPECT_EQ(states[0].stage, RankStage::kGone);
  EXPECT_EQ(states[0].end->kind, ExitKind::kInfra);
}

TEST(Agent, KnowsWhetherTheControllerHasHeardOfAKeeperThatExitedByItself) {
  Agent agent = fresh();
  EXPECT_TRUE(agent.attempts_acknowledged());
  agent.on_order(order({1, 1}, launch(kId)), Instant());
  agent.on_keeper_exit(kId, Instant());
  EXPECT_FALSE(agent.attempts_acknowledged());
  const std::vector<Report> sent = effects<Report>(agent);
  ASSERT_EQ(sent.size(), 1);
  agent.on_fault({.evidence = "hot"}, Instant());
  agent.on_order(order({1, 2}, Acknowledge{sent[0].number}), Instant());
  EXPECT_TRUE(agent.attempts_acknowledged()) << "a fault of the node is of no attempt";
}

TEST(Agent, ASuccessorNamesTheKeepersItFoundBeforeTheyHaveAnswered) {
  const std::vector<AttemptId> found{kId};
  Agent agent({.cluster = 7, .identity = kMe}, found, Instant());
  ASSERT_EQ(effects<TellKeeper>(agent).size(), 1);
  agent.on_order(order({1, 1}, Reconcile{}), Instant());
  const std::vector<Hello> hellos = reports<Hello>(agent);
  ASSERT_EQ(hellos.at(0).attempts.size(), 1);
  EXPECT_EQ(hellos[0].attempts[0].report.stage, RankStage::kUnknown);
  AttemptReport state{.token = {kId, 0}, .stage = RankStage::kRunning, .applied = {5, 1}};
  agent.on_keeper_report(state, Instant());
  (void)agent.take();
  agent.on_order(order({4, 1}, KillRanks{{kId, 0}}), Instant());
  EXPECT_EQ(refused(agent), RefusalReason::kOlderTerm) << "the keeper has seen a newer one";
}

TEST(Agent, MendsOnceAndKeepsTheNewestFaultOfALayer) {
  Agent agent = fresh();
  agent.on_order(order({1, 1}, MendNode{FaultLayer::kAccelerator}), Instant());
  agent.on_order(order({1, 2}, MendNode{FaultLayer::kAccelerator}), Instant());
  EXPECT_EQ(effects<BeginMending>(agent).size(), 1);
  agent.on_mended(Instant());
  agent.on_fault({.layer = FaultLayer::kAccelerator, .evidence = "xid 48"}, Instant());
  agent.on_fault({.layer = FaultLayer::kAccelerator, .evidence = "xid 79"}, Instant());
  (void)agent.take();
  agent.on_timer(Instant() + Duration::seconds(5));
  const std::vector<HealthFault> faults = reports<HealthFault>(agent);
  ASSERT_EQ(faults.size(), 1);
  EXPECT_EQ(faults[0].evidence, "xid 79");
}

}  // namespace
}  // namespace orrery
