// Each of these tests shows a defect that a seed of the protocol with a resource manager found.
#include "agent/fleet_link.hpp"
#include "executor/holds/hold_demand.hpp"
#include "executor/holds/hold_link_test.hpp"

namespace orrery {
namespace {

class HoldLinkFaultsTest : public HoldLinkTest {
 protected:
  /// Another controller begins, with the loans in control's state.
  void restart() {
    ++term_;
    begin(pool_);
  }
  /// A job runs on node 0, in hold "70" of the returned key.
  HoldKey run_job(std::uint32_t nodes = 1) {
    pool_.pilot_nodes = nodes;
    begin(pool_);
    job_ = submit(8 * nodes);
    wait(Duration::seconds(3));
    const HoldKey key = asked<EnsureHold>()[0].key;
    std::vector<std::string> names;
    names.reserve(nodes);
    for (std::uint32_t n = 0; n < nodes; ++n) names.push_back(name(n));
    run(key, "70", names);
    wait(Duration::seconds(3));
    for (std::uint32_t n = 0; n < nodes; ++n) cluster_.send(NodeJoined{NodeId(n), 7});
    cluster_.tick();
    cluster_.up(job_);
    return key;
  }
  [[nodiscard]] Status admit(std::uint32_t node, const HoldKey& key, const std::string& id) {
    Status admitted = link_->admit(NodeId(node), {key, id}, cluster_.state(), cluster_.now());
    settle();
    return admitted;
  }

  HoldPool pool_;
  JobId job_;
};

// Once taken back, a node was of no hold any more, so that the end of its hold proved nothing.
TEST_F(HoldLinkFaultsTest, WhatAManagerEndsKeepsItsNodesUntilTheEndIsProved) {
  (void)run_job();
  holds_[0].phase = HoldPhase::kEnding;
  wait(Duration::seconds(3));
  EXPECT_EQ(cluster_.phase(job_), JobPhase::kStopping);
  EXPECT_EQ(only().nodes, std::vector<NodeId>{NodeId(0)});
  restart();
  holds_[0].phase = HoldPhase::kEnded;
  wait(Duration::seconds(3));
  EXPECT_EQ(cluster_.phase(job_), JobPhase::kQueued);
  EXPECT_EQ(cluster_.health(NodeId(0)), NodeHealth::kAbsent);
}

TEST_F(HoldLinkFaultsTest, WhatAManagerEndsAndForgetsLeavesItsRanksUnproved) {
  (void)run_job();
  holds_[0].phase = HoldPhase::kEnding;
  wait(Duration::seconds(3));
  holds_.clear();
  wait(Duration::seconds(20));
  EXPECT_TRUE(link_->holds().empty());
  EXPECT_EQ(cluster_.health(NodeId(0)), NodeHealth::kLost);
  EXPECT_EQ(cluster_.phase(job_), JobPhase::kStopping);
}

// A controller that knew only the key took the end of the second for that of the first, and the job
// ran twice.
TEST_F(HoldLinkFaultsTest, TheEndOfAnotherHoldOfTheSameKeyProvesNothing) {
  const HoldKey key = run_job();
  restart();
  holds_[0] = {.key = key, .id = "71", .phase = HoldPhase::kEnded};
  wait(Duration::seconds(3));
  EXPECT_EQ(cluster_.phase(job_), JobPhase::kRunning);
  EXPECT_EQ(cluster_.health(NodeId(0)), NodeHealth::kReady);
  EXPECT_EQ(only().id, "70");
}

TEST_F(HoldLinkFaultsTest, ADirtyEndProvesNothing) {
  (void)run_job();
  holds_[0].phase = HoldPhase::kEndedDirty;
  wait(Duration::seconds(3));
  EXPECT_EQ(cluster_.phase(job_), JobPhase::kStopping);
  EXPECT_EQ(cluster_.health(NodeId(0)), NodeHealth::kLost);
}

// The end of the next hold of a node freed what an earlier one had left there, and the job ran
// twice.
TEST_F(HoldLinkFaultsTest, TheEndOfTheNextHoldDoesNotProveWhatAnEarlierOneLeft) {
  const HoldKey key = run_job();
  holds_[0].phase = HoldPhase::kEndedDirty;
  wait(Duration::seconds(3));
  holds_.clear();
  run({.id = key.id, .epoch = key.epoch - 1}, "71", {name(0)});
  wait(Duration::seconds(3));
  EXPECT_EQ(cluster_.health(NodeId(0)), NodeHealth::kLost);
  holds_[0].phase = HoldPhase::kEnded;
  wait(Duration::seconds(3));
  EXPECT_EQ(cluster_.phase(job_), JobPhase::kStopping);
}

// Only an agent on the node proves that nothing is left there, and no job asked for a pilot: the
// job that had the node waited for ever.
TEST_F(HoldLinkFaultsTest, ALostNodeIsRequestedOnceItsManagerHasItInService) {
  (void)run_job();
  const ManagerNode broken{.name = name(0), .out_of_service = true, .reason = "Not responding"};
  nodes_ = {broken, {.name = name(1)}, {.name = name(2)}, {.name = name(3)}};
  holds_[0].phase = HoldPhase::kEndedDirty;
  wait(Duration::seconds(3));
  holds_.clear();
  const std::size_t before = asked<EnsureHold>().size();
  wait(Duration::minutes(2));
  EXPECT_EQ(asked<EnsureHold>().size(), before) << "it is out of service there";
  nodes_[0] = {.name = name(0)};
  wait(Duration::seconds(5));
  ASSERT_EQ(asked<EnsureHold>().size(), before + 1);
  const EnsureHold order = asked<EnsureHold>().back();
  EXPECT_EQ(order.nodes, 1u);
  EXPECT_EQ(order.avoid, (std::vector<std::string>{name(1), name(2), name(3)}));
  run(order.key, "71", {name(0)});
  wait(Duration::seconds(3));
  EXPECT_TRUE(admit(0, order.key, "71"));
  cluster_.gone(job_);
  wait(Duration::seconds(5));
  cluster_.send(NodeJoined{NodeId(0), 8});
  cluster_.tick();
  EXPECT_EQ(cluster_.nodes(job_), std::vector<NodeId>{NodeId(0)});
}

TEST_F(HoldLinkFaultsTest, ANodeIsLentAnewOnceItsNextAgentHasShownThatNothingIsLeft) {
  const HoldKey key = run_job();
  holds_[0].phase = HoldPhase::kEndedDirty;
  wait(Duration::seconds(3));
  holds_.clear();
  const HoldKey next{.id = key.id, .epoch = key.epoch - 1};
  run(next, "71", {name(0)});
  wait(Duration::seconds(3));
  EXPECT_TRUE(admit(0, next, "71"));
  cluster_.gone(job_);
  wait(Duration::seconds(5));
  EXPECT_EQ(cluster_.state().node(NodeId(0)).loan.hold, "slurm/" + text_of(next) + ":71");
  cluster_.send(NodeJoined{NodeId(0), 7});
  EXPECT_EQ(cluster_.health(NodeId(0)), NodeHealth::kReady);
}

// A plugin of Slurm gave its jobs other names: one more was asked for every ten seconds, for ever.
TEST_F(HoldLinkFaultsTest, WhatIsAcceptedAndNeverListedIsAskedForWithPauses) {
  begin({.keep = 2});
  std::size_t answered = 0;
  const auto pass = [&](int seconds) {
    for (int second = 0; second < seconds; ++second) {
      wait(Duration::seconds(1));
      for (const auto all = asked<EnsureHold>(); answered < all.size(); ++answered) {
        hear(HoldAnswer{.key = all[answered].key,
                        .id = std::to_string(70 + answered),
                        .refused = {},
                        .text = {}});
      }
      answer_lists();
    }
  };
  pass(60);
  ASSERT_EQ(answered, 6u) << "three times for each of two pilots";
  EXPECT_EQ(asked<ReleaseHold>().size(), 6u) << "it may be there all the same";
  EXPECT_TRUE(link_->holds().empty());
  EXPECT_EQ(link_->manager(0).refused.refusals, 1u);
  EXPECT_EQ(link_->manager(0).refused.text,
            "slurm accepted job 74 but does not list it as pilot-3-1 of this cluster: does a "
            "job_submit plugin change names or comments, or does the job belong to another user?");
  pass(3600);
  EXPECT_LE(answered, 6u + 2 * 10) << "once after each pause, which grow to ten minutes";
  EXPECT_GT(answered, 6u + 2 * 5);
  // The plugin is mended.
  link_->ask_again(cluster_.now());
  pass(3);
  const HoldKey key = asked<EnsureHold>().back().key;
  run(key, std::to_string(70 + answered - 1), {name(0)});
  pass(3);
  EXPECT_TRUE(link_->manager(0).refused.text.empty());
}

TEST_F(HoldLinkFaultsTest, WhatIsAcceptedAndLostTwiceIsListedAtLastWithoutAPause) {
  begin({.keep = 1});
  wait(Duration::seconds(3));
  const HoldKey key = asked<EnsureHold>()[0].key;
  for (std::size_t lost = 1; lost <= 2; ++lost) {
    hear(HoldAnswer{.key = key, .id = std::to_string(70 + lost), .refused = {}, .text = {}});
    wait(Duration::seconds(20));
    ASSERT_EQ(asked<EnsureHold>().size(), lost + 1);
  }
  hear(HoldAnswer{.key = key, .id = "73", .refused = {}, .text = {}});
  run(key, "73", {name(0)});
  wait(Duration::seconds(3));
  EXPECT_EQ(only().state, HoldState::kGranted);
  EXPECT_EQ(only().orders.unseen, 0u);
  EXPECT_TRUE(link_->manager(0).refused.text.empty());
}

// "End the hold of an empty id" means nothing to a manager, or all holds of the name.
TEST_F(HoldLinkFaultsTest, AHoldIsReleasedOnceItsIdIsKnown) {
  begin();
  const JobId id = submit(8);
  wait(Duration::seconds(3));
  const HoldKey key = asked<EnsureHold>()[0].key;
  cluster_.send(CancelJob{id});
  complete_ = false;  // and no answer comes
  wait(Duration::minutes(6));
  EXPECT_EQ(only().state, HoldState::kReleasing);
  EXPECT_TRUE(asked<ReleaseHold>().empty());
  hear(HoldAnswer{.key = key, .id = "70", .refused = {}, .text = {}});
  answer_lists();
  ASSERT_EQ(asked<ReleaseHold>().size(), 1u);
  EXPECT_EQ(asked<ReleaseHold>()[0].id, "70");
}

// A node in repair counted as one that speaks, and kept a forgotten hold for ever.
TEST_F(HoldLinkFaultsTest, ANodeInRepairDoesNotKeepAForgottenHold) {
  const HoldKey key = run_job();
  cluster_.send(NodeFault{NodeId(0), FaultLayer::kAccelerator, "xid 79", true, true});
  cluster_.gone(job_);
  ASSERT_EQ(cluster_.health(NodeId(0)), NodeHealth::kRepairing);
  holds_.clear();
  wait(Duration::seconds(30));
  for (const Hold& hold : link_->holds()) EXPECT_NE(hold.key, key);
  EXPECT_EQ(cluster_.health(NodeId(0)), NodeHealth::kRepairing);
}

// It counted as one node; more was asked for, and neither could start beside the other.
TEST_F(HoldLinkFaultsTest, AWaitingHoldOfAnEarlierControllerCountsAsAWholePilot) {
  holds_.push_back({.key = {.id = 1, .epoch = 2}, .id = "70", .phase = HoldPhase::kWaiting});
  begin({.pilot_nodes = 3, .keep = 3});
  wait(Duration::seconds(5));
  EXPECT_TRUE(asked<EnsureHold>().empty());
  EXPECT_EQ(only().asked, 3u);
}

TEST_F(HoldLinkFaultsTest, AnAgentOfAHoldThatEndsIsLetInWhileItsRanksMayBeThere) {
  const HoldKey key = run_job();
  holds_[0].phase = HoldPhase::kEnding;
  wait(Duration::seconds(3));
  EXPECT_TRUE(admit(0, key, "70"));
  EXPECT_FALSE(admit(0, key, "71"));
  EXPECT_FALSE(admit(1, key, "70"));
}

// It was released at once, so that its manager killed ranks that were about to leave.
TEST_F(HoldLinkFaultsTest, AHoldThatEndsByTheWordOfItsAgentIsReleasedWhenItsRanksHaveLeft) {
  (void)run_job(2);
  link_->end(NodeId(0), "the hold ends", cluster_.now());
  settle();
  wait(Duration::seconds(20));
  EXPECT_EQ(cluster_.phase(job_), JobPhase::kStopping);
  EXPECT_TRUE(asked<ReleaseHold>().empty());
  cluster_.gone(job_);
  wait(Duration::seconds(3));
  EXPECT_EQ(asked<ReleaseHold>().size(), 1u);
}

TEST_F(HoldLinkFaultsTest, AHoldThatEndsByTheWordOfItsAgentIsReleasedAfterAMinuteAtTheLatest) {
  (void)run_job();
  link_->end(NodeId(0), "the hold ends", cluster_.now());
  settle();
  wait(Duration::seconds(65));
  EXPECT_FALSE(asked<ReleaseHold>().empty());
}

// The job that blocked all others was cancelled, no pass followed, and nothing was asked for.
TEST(HoldDemand, CountsTheNextJobWhenTheOneThatBlockedItIsCancelled) {
  ScriptedCluster cluster({.policy = "fifo", .nodes_begin = NodeHealth::kJoining});
  const JobId first = cluster.submit(cluster.job(16));
  (void)cluster.submit(cluster.job(8));
  cluster.tick();
  const HoldNodes lent{.nodes = {NodeId(0), NodeId(1)}, .most = 2, .time = Duration::hours(24)};
  EXPECT_EQ(
      nodes_needed(job_needs(cluster.core(), lent, lent.time), lent, cluster.topology()).nodes, 2u);
  cluster.send(CancelJob{first});
  cluster.tick();
  EXPECT_EQ(
      nodes_needed(job_needs(cluster.core(), lent, lent.time), lent, cluster.topology()).nodes, 1u);
}

// --- Control ------------------------------------------------------------------------------------

TEST_F(HoldLinkFaultsTest, ANodeInQuarantineStaysThereWhenItIsTakenBackWithRanks) {
  (void)run_job();
  cluster_.send(NodeFault{NodeId(0), FaultLayer::kAccelerator, "xid 79", true, true});
  ASSERT_EQ(cluster_.health(NodeId(0)), NodeHealth::kQuarantined);
  holds_[0].phase = HoldPhase::kEndedDirty;
  wait(Duration::seconds(3));
  EXPECT_EQ(cluster_.health(NodeId(0)), NodeHealth::kQuarantined);
  EXPECT_EQ(cluster_.phase(job_), JobPhase::kStopping);
  cluster_.send(FenceNode{NodeId(0)});
  EXPECT_EQ(cluster_.phase(job_), JobPhase::kQueued);
}

// Its silence was not noticed, and with its time extended it was ready without an agent.
TEST_F(HoldLinkFaultsTest, ADrainedNodeOfAHoldIsLostWithItsAgentAndNotAtFault) {
  (void)run_job();
  cluster_.end(job_);
  cluster_.send(DrainNode{NodeId(0), false, "disk"});
  ASSERT_EQ(cluster_.health(NodeId(0)), NodeHealth::kDrained);
  cluster_.send(NodeHeard{NodeId(0), NodeHealth::kLost, 5});
  EXPECT_EQ(cluster_.health(NodeId(0)), NodeHealth::kLost);
  EXPECT_TRUE(cluster_.state().node(NodeId(0)).faults.empty());
  cluster_.send(NodeJoined{NodeId(0), 7});
  EXPECT_EQ(cluster_.health(NodeId(0)), NodeHealth::kDrained);
}

TEST_F(HoldLinkFaultsTest, AnAgentThatEndsWithItsHoldIsNoFaultOfItsNode) {
  (void)run_job();
  holds_[0].phase = HoldPhase::kEnding;
  wait(Duration::seconds(3));
  cluster_.send(NodeHeard{NodeId(0), NodeHealth::kLost, 5});
  EXPECT_EQ(cluster_.health(NodeId(0)), NodeHealth::kLost);
  EXPECT_TRUE(cluster_.state().node(NodeId(0)).faults.empty());
}

TEST_F(HoldLinkFaultsTest, ANodeTakesWorkAgainWhenTheTimeOfItsHoldIsExtended) {
  begin({.keep = 1});
  wait(Duration::seconds(3));
  run(asked<EnsureHold>()[0].key, "70", {name(0)});
  holds_[0].left = Duration::seconds(70);
  wait(Duration::seconds(3));
  cluster_.send(NodeJoined{NodeId(0), 7});
  holds_[0].left = Duration::seconds(50);
  wait(Duration::seconds(10));
  ASSERT_EQ(cluster_.health(NodeId(0)), NodeHealth::kDrained);
  holds_[0].left = Duration::hours(5);
  wait(Duration::seconds(3));
  EXPECT_EQ(cluster_.health(NodeId(0)), NodeHealth::kReady);
}

TEST_F(HoldLinkFaultsTest, TheDrainOfANodeEndsAlsoWhileItIsNotLent) {
  const HoldKey key = run_job();
  cluster_.end(job_);
  cluster_.send(DrainNode{NodeId(0), false, "disk"});
  holds_[0].phase = HoldPhase::kEnded;
  wait(Duration::seconds(3));
  ASSERT_EQ(cluster_.health(NodeId(0)), NodeHealth::kAbsent);
  cluster_.send(ResumeNode{NodeId(0)});
  EXPECT_EQ(cluster_.health(NodeId(0)), NodeHealth::kAbsent);
  cluster_.send(NodeGranted{NodeId(0), "slurm/" + text_of(key) + ":72"});
  cluster_.send(NodeJoined{NodeId(0), 7});
  EXPECT_EQ(cluster_.health(NodeId(0)), NodeHealth::kReady);
}

TEST_F(HoldLinkFaultsTest, ANodeThatIsNotLentIsDrainedWhenItComes) {
  begin();
  wait(Duration::seconds(3));
  cluster_.send(DrainNode{NodeId(0), false, "disk"});
  EXPECT_EQ(cluster_.health(NodeId(0)), NodeHealth::kAbsent);
  EXPECT_TRUE(cluster_.state().node(NodeId(0)).drain);
  cluster_.send(DrainNode{NodeId(0), false, "its second disk"});
  EXPECT_EQ(cluster_.state().node(NodeId(0)).drain_why, "its second disk");
  (void)submit(8);
  wait(Duration::seconds(3));
  ASSERT_EQ(asked<EnsureHold>().size(), 1u);
  EXPECT_EQ(asked<EnsureHold>()[0].avoid, std::vector<std::string>{name(0)});
  cluster_.send(NodeGranted{NodeId(0), "slurm/pilot-9-9:72"});
  cluster_.send(NodeJoined{NodeId(0), 7});
  EXPECT_EQ(cluster_.health(NodeId(0)), NodeHealth::kDrained);
}

// The question is lost: the agent was known before, so that nothing else made it join.
TEST_F(HoldLinkFaultsTest, ANodeIsGreetedUntilItsAgentAnswers) {
  FleetLink link({.cluster = 7, .boots = {0}}, {}, cluster_.now());
  const AgentIdentity agent{NodeId(0), 1, 1};
  const auto questions = [&] {
    std::vector<OrderStamp> stamps;
    for (const ExecutorEffect& effect : link.take()) {
      const auto* order = std::get_if<Order>(&effect);
      if (order != nullptr && std::holds_alternative<Reconcile>(order->what)) {
        stamps.push_back(order->stamp);
      }
    }
    return stamps;
  };
  Instant now = cluster_.now();
  link.deliver({agent, 0, Heartbeat{1, now, {}}}, now);
  link.deliver({agent, 0, Hello{questions().at(0), now, {}}}, now);
  link.carry_out(GreetNode{NodeId(0)}, cluster_.state(), now);
  EXPECT_EQ(questions().size(), 1u);
  now = now + Duration::seconds(3);
  link.deliver({agent, 0, Heartbeat{2, now, {}}}, now);
  ASSERT_EQ(questions().size(), 1u);
  link.deliver({agent, 0, Heartbeat{3, now, {}}}, now);
  EXPECT_TRUE(questions().empty()) << "not with every heartbeat";
}

}  // namespace
}  // namespace orrery
