#include "executor/holds/hold_link_test.hpp"

namespace orrery {
namespace {

TEST(HoldKeyText, IsReadBackAsItWasWritten) {
  const HoldKey key{.id = 12, .epoch = 3};
  EXPECT_EQ(text_of(key), "pilot-3-12");
  EXPECT_EQ(hold_key_of("pilot-3-12"), key);
  for (const char* other : {"pilot-3", "pilot--1", "pilot-03-1", "pilot-3-12 ", "job-3-12", "",
                            "pilot-3-012", "pilot-3-18446744073709551616"}) {
    EXPECT_FALSE(hold_key_of(other)) << other;
  }
}

TEST_F(HoldLinkTest, AsksForNothingBeforeACompleteList) {
  begin();
  complete_ = false;
  trouble_ = "slurm_load_jobs error: Unable to contact slurm controller";
  (void)submit(8);
  wait(Duration::minutes(2));
  EXPECT_TRUE(asked<EnsureHold>().empty());
  EXPECT_EQ(link_->manager(0).trouble, trouble_);
  complete_ = true;
  wait(Duration::seconds(5));
  ASSERT_EQ(asked<EnsureHold>().size(), 1u);
  EXPECT_EQ(asked<EnsureHold>()[0].key, (HoldKey{.id = 1, .epoch = 3}));
  EXPECT_TRUE(link_->manager(0).trouble.empty());
}

TEST_F(HoldLinkTest, HoldsWhatWaitingJobsNeedAndReleasesItWhenItIsIdle) {
  begin();
  const JobId id = submit(16);
  wait(Duration::seconds(5));
  ASSERT_EQ(asked<EnsureHold>().size(), 1u) << "no node waits for the other one";
  EXPECT_EQ(asked<EnsureHold>()[0].nodes, 2u);
  const HoldKey key = asked<EnsureHold>()[0].key;
  hear(HoldAnswer{.key = key, .id = "70", .refused = {}, .text = {}});
  run(key, "70", {name(0), name(1)});
  wait(Duration::seconds(3));
  cluster_.send(NodeJoined{NodeId(0), 7});
  cluster_.send(NodeJoined{NodeId(1), 7});
  cluster_.tick();
  ASSERT_EQ(cluster_.nodes(id), (std::vector<NodeId>{NodeId(0), NodeId(1)}));
  cluster_.up(id);
  wait(Duration::minutes(30));
  EXPECT_EQ(asked<EnsureHold>().size(), 1u);
  EXPECT_TRUE(asked<ReleaseHold>().empty());
  cluster_.end(id);
  wait(Duration::minutes(4));
  EXPECT_TRUE(asked<ReleaseHold>().empty());
  wait(Duration::minutes(2));
  EXPECT_GE(asked<ReleaseHold>().size(), 1u);
  EXPECT_EQ(cluster_.health(NodeId(0)), NodeHealth::kAbsent);
  holds_.clear();
  wait(Duration::minutes(1));
  EXPECT_TRUE(link_->holds().empty());
}

TEST_F(HoldLinkTest, AsksAgainUnderTheSameKeyForWhatItsManagerHasLost) {
  begin({.keep = 1});
  wait(Duration::seconds(3));
  ASSERT_EQ(asked<EnsureHold>().size(), 1u);
  const HoldKey key = asked<EnsureHold>()[0].key;
  hear(HoldAnswer{.key = key, .id = "70", .refused = {}, .text = {}});
  EXPECT_EQ(only().state, HoldState::kWaiting);
  wait(Duration::seconds(8));
  EXPECT_EQ(asked<EnsureHold>().size(), 1u) << "one list alone proves nothing";
  wait(Duration::seconds(12));
  ASSERT_EQ(asked<EnsureHold>().size(), 2u);
  EXPECT_EQ(asked<EnsureHold>()[1].key, key);
}

TEST_F(HoldLinkTest, KeepsAHoldThatItsManagerForgotWhileItsAgentsSpeak) {
  begin({.keep = 1});
  wait(Duration::seconds(3));
  run(asked<EnsureHold>()[0].key, "70", {name(2)});
  wait(Duration::seconds(3));
  cluster_.send(NodeJoined{NodeId(2), 7});
  holds_.clear();
  wait(Duration::minutes(3));
  EXPECT_EQ(only().state, HoldState::kGranted);
  EXPECT_EQ(cluster_.health(NodeId(2)), NodeHealth::kReady);
  cluster_.send(NodeHeard{NodeId(2), NodeHealth::kLost, 5});
  wait(Duration::seconds(30));
  EXPECT_EQ(cluster_.health(NodeId(2)), NodeHealth::kAbsent);
}

TEST_F(HoldLinkTest, ReleasesTheSecondOfTwoHoldsOfOneKeyAndRefusesItsAgents) {
  begin({.keep = 1});
  wait(Duration::seconds(3));
  const HoldKey key = asked<EnsureHold>()[0].key;
  run(key, "70", {name(0)});
  run(key, "71", {name(1)});
  wait(Duration::seconds(3));
  ASSERT_FALSE(asked<ReleaseHold>().empty());
  EXPECT_EQ(asked<ReleaseHold>()[0].id, "71");
  EXPECT_TRUE(link_->admit(NodeId(0), {key, "70"}, cluster_.state(), cluster_.now()));
  const Status other = link_->admit(NodeId(1), {key, "71"}, cluster_.state(), cluster_.now());
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().kind, ErrorKind::kInput);
  EXPECT_EQ(other.error().message, "pilot-3-1 is 70 of slurm, not 71");
}

TEST_F(HoldLinkTest, TakesTheWordOfAnAgentBeforeTheListOfItsManager) {
  begin({.keep = 1});
  wait(Duration::seconds(3));
  const HoldKey key = asked<EnsureHold>()[0].key;
  EXPECT_TRUE(link_->admit(NodeId(3), {key, "70"}, cluster_.state(), cluster_.now()));
  settle();
  EXPECT_EQ(cluster_.health(NodeId(3)), NodeHealth::kJoining);
  EXPECT_EQ(only().state, HoldState::kGranted);
  EXPECT_EQ(cluster_.state().node(NodeId(3)).loan.hold, "slurm/pilot-3-1:70");
}

TEST_F(HoldLinkTest, TakesOverTheHoldsOfAnEarlierController) {
  cluster_.send(NodeAbsent{NodeId(1), false, {}});
  cluster_.send(NodeGranted{NodeId(1), "slurm/pilot-2-9"});
  run({.id = 9, .epoch = 2}, "70", {name(1)});
  holds_.push_back({.key = {.id = 10, .epoch = 2}, .id = "71", .phase = HoldPhase::kWaiting});
  begin({.keep = 2});
  wait(Duration::seconds(5));
  EXPECT_TRUE(asked<EnsureHold>().empty());
  ASSERT_EQ(link_->holds().size(), 2u);
  EXPECT_EQ(link_->holds()[0].nodes, std::vector<NodeId>{NodeId(1)});
  EXPECT_EQ(link_->holds()[1].state, HoldState::kWaiting);
}

TEST_F(HoldLinkTest, AsksForNothingWhereItsLogWasRestoredFromAnOlderCopy) {
  run({.id = 1, .epoch = 9}, "70", {name(1)});
  begin({.keep = 2});
  wait(Duration::minutes(1));
  EXPECT_TRUE(asked<EnsureHold>().empty());
  EXPECT_TRUE(asked<ReleaseHold>().empty());
  EXPECT_EQ(link_->manager(0).newer, "pilot-9-1");
}

TEST_F(HoldLinkTest, WaitsLongerAfterEachRefusal) {
  begin({.keep = 1});
  wait(Duration::seconds(3));
  const auto refuse = [&](HoldRefusal why) {
    hear(HoldAnswer{.key = asked<EnsureHold>().back().key,
                    .id = {},
                    .refused = why,
                    .text = "Invalid qos specification"});
  };
  refuse(HoldRefusal::kQuota);
  EXPECT_EQ(link_->manager(0).refused.text, "quota: Invalid qos specification");
  wait(Duration::seconds(28));
  EXPECT_EQ(asked<EnsureHold>().size(), 1u);
  wait(Duration::seconds(4));
  ASSERT_EQ(asked<EnsureHold>().size(), 2u);
  refuse(HoldRefusal::kQuota);
  wait(Duration::seconds(55));
  EXPECT_EQ(asked<EnsureHold>().size(), 2u);
  wait(Duration::seconds(8));
  EXPECT_EQ(asked<EnsureHold>().size(), 3u);
}

TEST_F(HoldLinkTest, AsksAgainAtOnceWhenItIsToldTo) {
  begin({.keep = 1});
  wait(Duration::seconds(3));
  hear(HoldAnswer{.key = asked<EnsureHold>().back().key,
                  .id = {},
                  .refused = HoldRefusal::kNever,
                  .text = "Requested reservation is invalid"});
  wait(Duration::minutes(9));
  ASSERT_EQ(asked<EnsureHold>().size(), 1u);
  link_->ask_again(cluster_.now());
  wait(Duration::seconds(1));
  ASSERT_EQ(asked<EnsureHold>().size(), 2u);
  EXPECT_NE(asked<EnsureHold>()[0].key, asked<EnsureHold>()[1].key);
}

// Its reservation had ended, and it waited for ever.
TEST_F(HoldLinkTest, GivesBackAHoldThatNeverStartsAndAsksForAnother) {
  begin({.keep = 1});
  wait(Duration::seconds(3));
  const HoldKey key = asked<EnsureHold>().back().key;
  holds_ = {{.key = key,
             .id = "70",
             .phase = HoldPhase::kWaiting,
             .reason = "RESV_DEL_HOLD: Reservation r1 was deleted",
             .stuck = true}};
  wait(Duration::seconds(3));
  ASSERT_EQ(asked<ReleaseHold>().size(), 1u);
  EXPECT_EQ(asked<ReleaseHold>()[0].id, "70");
  EXPECT_EQ(link_->manager(0).refused.text, "RESV_DEL_HOLD: Reservation r1 was deleted");
  EXPECT_EQ(asked<EnsureHold>().size(), 1u) << "after a pause";
  holds_.clear();
  wait(Duration::seconds(35));
  ASSERT_EQ(asked<EnsureHold>().size(), 2u);
  EXPECT_NE(asked<EnsureHold>()[1].key, key);
}

TEST_F(HoldLinkTest, GivesUpAHoldWhoseAgentsNeverJoin) {
  begin({.keep = 1});
  wait(Duration::seconds(3));
  run(asked<EnsureHold>()[0].key, "70", {name(0)});
  wait(Duration::minutes(6));
  ASSERT_FALSE(asked<ReleaseHold>().empty());
  EXPECT_EQ(link_->manager(0).refused.text, "no agent of the hold has joined");
}

TEST_F(HoldLinkTest, DoesNotAskForAJobThatItsNodesCanNeverRun) {
  begin();
  Submission job = cluster_.job(8);
  job.request.estimate.reset();
  job.request.time_limit = Duration::hours(48);
  (void)cluster_.submit(job);
  cluster_.tick();
  wait(Duration::seconds(10));
  EXPECT_TRUE(asked<EnsureHold>().empty());
}

// What `most: 0` in managers.yaml and SIGHUP do.
TEST_F(HoldLinkTest, GivesBackAtOnceWhatNoJobUsesWhereNothingIsToBeLent) {
  begin({.keep = 2});
  wait(Duration::seconds(3));
  const std::vector<EnsureHold> orders = asked<EnsureHold>();
  ASSERT_EQ(orders.size(), 2u);
  run(orders[0].key, "70", {name(0)});
  holds_.push_back({.key = orders[1].key, .id = "71", .reason = "Priority", .nodes = {}});
  wait(Duration::seconds(3));
  cluster_.send(NodeJoined{NodeId(0), 7});
  const JobId id = submit(8);
  cluster_.up(id);
  (void)submit(8);
  term_ = 4;
  most_ = 0;
  begin();
  wait(Duration::seconds(5));
  ASSERT_EQ(asked<ReleaseHold>().size(), 1u);
  EXPECT_EQ(asked<ReleaseHold>()[0].id, "71") << "it waits";
  EXPECT_EQ(cluster_.phase(id), JobPhase::kRunning);
  cluster_.send(DrainNode{NodeId(0), false, "of others now"});
  cluster_.end(id);
  wait(Duration::seconds(3));
  EXPECT_EQ(asked<ReleaseHold>().back().id, "70") << "its job has ended";
  wait(Duration::minutes(2));
  EXPECT_EQ(asked<EnsureHold>().size(), 2u) << "although a job waits";
}

TEST_F(HoldLinkTest, FreesWhatItsManagerProvesToBeGone) {
  begin();
  const JobId id = submit(8);
  wait(Duration::seconds(3));
  run(asked<EnsureHold>()[0].key, "70", {name(0)});
  wait(Duration::seconds(3));
  cluster_.send(NodeJoined{NodeId(0), 7});
  cluster_.tick();
  cluster_.up(id);
  holds_[0].phase = HoldPhase::kEnding;
  wait(Duration::seconds(3));
  EXPECT_EQ(cluster_.health(NodeId(0)), NodeHealth::kDraining) << "ranks leave in order";
  holds_[0].phase = HoldPhase::kEnded;
  holds_[0].reason = "Cancelled by uid 0";
  wait(Duration::seconds(3));
  EXPECT_EQ(cluster_.health(NodeId(0)), NodeHealth::kAbsent);
  EXPECT_EQ(cluster_.phase(id), JobPhase::kQueued);
}

TEST_F(HoldLinkTest, AsksForEachGangAtOnceAndForSmallJobsOneByOne) {
  begin();
  (void)submit(8);
  (void)submit(8);
  (void)submit(16);
  wait(Duration::seconds(3));
  const std::vector<EnsureHold> orders = asked<EnsureHold>();
  ASSERT_EQ(orders.size(), 3u);
  EXPECT_EQ(orders[0].nodes, 1u);
  EXPECT_EQ(orders[1].nodes, 1u);
  EXPECT_EQ(orders[2].nodes, 2u);
}

TEST_F(HoldLinkTest, TakesOverAHoldThatWaitsWithTheNodesThatItAsksFor) {
  holds_ = {{.key = {.id = 9, .epoch = 2}, .id = "70", .asked = 2}};
  begin();
  (void)submit(16);
  wait(Duration::seconds(5));
  EXPECT_EQ(only().asked, 2u);
  EXPECT_TRUE(asked<EnsureHold>().empty());
}

// The pilot went back, and Slurm chose the same node for each next one.
TEST_F(HoldLinkTest, LeavesOutNodesThatAreNotItsManagersHereOnceOneOfThemWasLent) {
  nodes_ = {{.name = name(0)}, {.name = "login1"}, {.name = "cpu7"}};
  begin({.keep = 1});
  wait(Duration::seconds(3));
  EXPECT_TRUE(asked<EnsureHold>()[0].avoid.empty()) << "its partition may have its nodes alone";
  run(asked<EnsureHold>()[0].key, "70", {"cpu7"});
  wait(Duration::seconds(3));
  EXPECT_EQ(asked<ReleaseHold>().at(0).id, "70");
  holds_.clear();
  wait(Duration::seconds(40));
  ASSERT_EQ(asked<EnsureHold>().size(), 2u);
  EXPECT_EQ(asked<EnsureHold>()[1].avoid, (std::vector<std::string>{"cpu7", "login1"}));
}

/// Two H100 nodes and two A100 nodes.
class TwoTypesHoldTest : public HoldLinkTest {
 protected:
  TwoTypesHoldTest() : HoldLinkTest(two_types()) {}
  JobId submit_old() {
    Submission job = cluster_.job(8);
    job.request.roles[0].options[0].gang = cluster_.gang(8, "a100");
    const JobId id = cluster_.submit(job);
    cluster_.tick();
    return id;
  }
  void lend(const HoldKey& key, const std::string& id, std::uint32_t node) {
    run(key, id, {name(node)});
    wait(Duration::seconds(3));
    cluster_.send(NodeJoined{NodeId(node), 7});
    cluster_.tick();
  }
};

// A node of the wrong type counted as what the job needs, and the job waited for ever.
TEST_F(TwoTypesHoldTest, ANodeOfAnotherTypeIsOfNoUseToAJob) {
  begin({.keep = 1});
  wait(Duration::seconds(3));
  lend(asked<EnsureHold>().at(0).key, "70", 2);
  const JobId job = submit(8);
  wait(Duration::seconds(3));
  ASSERT_EQ(asked<EnsureHold>().size(), 2u);
  EXPECT_TRUE(asked<EnsureHold>()[0].avoid.empty());
  EXPECT_EQ(asked<EnsureHold>()[1].avoid, (std::vector<std::string>{name(2), name(3)}));
  const HoldKey key = asked<EnsureHold>()[1].key;
  holds_.push_back({.key = key, .id = "71"});
  wait(Duration::minutes(20));
  for (const ReleaseHold& order : asked<ReleaseHold>()) EXPECT_EQ(order.id, "70");
  EXPECT_FALSE(asked<ReleaseHold>().empty()) << "one node is held, as is to be kept";
  holds_.clear();
  lend(key, "71", 1);
  EXPECT_EQ(cluster_.nodes(job), std::vector<NodeId>{NodeId(1)});
}

TEST_F(TwoTypesHoldTest, AHoldThatWaitsForNodesOfAnotherTypeIsAskedForAnew) {
  begin();
  const JobId job = submit(8);
  wait(Duration::seconds(3));
  hear(HoldAnswer{.key = asked<EnsureHold>().at(0).key, .id = "70", .refused = {}, .text = {}});
  cluster_.send(CancelJob{job});
  (void)submit_old();
  wait(Duration::seconds(3));
  EXPECT_EQ(asked<ReleaseHold>().at(0).id, "70");
  ASSERT_EQ(asked<EnsureHold>().size(), 2u);
  EXPECT_EQ(asked<EnsureHold>()[1].avoid, (std::vector<std::string>{name(0), name(1)}));
}

// The manager lends one node of each rack as long as it may; the job needs two of one rack.
TEST_F(HoldLinkTest, AJobThatDoesNotStartOnIdleNodesGetsOthersInTheEnd) {
  begin();
  Submission submission = cluster_.job(16);
  submission.request.roles[0].options[0].gang.required = TopologyLevel::kRack;
  const JobId job = cluster_.submit(submission);
  cluster_.tick();
  std::size_t granted = 0;
  for (int second = 0; second < 3'600 && cluster_.nodes(job).empty(); ++second) {
    for (const auto orders = asked<EnsureHold>(); granted < orders.size(); ++granted) {
      const EnsureHold& order = orders[granted];
      ASSERT_EQ(order.nodes, 2u);
      std::vector<std::uint32_t> lent;
      for (const std::uint32_t n : {0u, 2u, 1u, 3u}) {
        const auto found = std::find(order.avoid.begin(), order.avoid.end(), name(n));
        if (found == order.avoid.end() && lent.size() < 2) lent.push_back(n);
      }
      ASSERT_EQ(lent.size(), 2u);
      holds_.clear();
      run(order.key, std::to_string(granted), {name(lent[0]), name(lent[1])});
      wait(Duration::seconds(3));
      for (const std::uint32_t n : lent) cluster_.send(NodeJoined{NodeId(n), 7});
      cluster_.tick();
    }
    wait(Duration::seconds(1));
  }
  EXPECT_EQ(cluster_.nodes(job), (std::vector<NodeId>{NodeId(2), NodeId(3)}));
  EXPECT_EQ(granted, 3u);
}

TEST_F(HoldLinkTest, IdleNodesWaitForTheRestOfAGangAndAreKept) {
  begin({.keep = 2});
  wait(Duration::seconds(3));
  for (std::uint32_t n = 0; n < 2; ++n) {
    run(asked<EnsureHold>().at(n).key, std::to_string(70 + n), {name(n)});
  }
  wait(Duration::seconds(3));
  for (std::uint32_t n = 0; n < 2; ++n) cluster_.send(NodeJoined{NodeId(n), 7});
  wait(Duration::hours(1));
  (void)submit(32);
  wait(Duration::seconds(2));
  ASSERT_EQ(asked<EnsureHold>().size(), 3u);
  holds_.push_back({.key = asked<EnsureHold>()[2].key, .id = "72"});
  wait(Duration::hours(1));
  ASSERT_EQ(asked<EnsureHold>().size(), 3u);
  EXPECT_EQ(asked<EnsureHold>()[2].nodes, 2u);
  EXPECT_TRUE(asked<ReleaseHold>().empty());
}

}  // namespace
}  // namespace orrery
