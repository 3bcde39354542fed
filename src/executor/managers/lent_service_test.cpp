// executor/managers/lent_service_test.cpp - drains of lent nodes, by their manager and by
// operators.
#include "executor/managers/lent_service.hpp"

#include "executor/holds/hold_link_test.hpp"

namespace orrery {
namespace {

class LentServiceTest : public HoldLinkTest {
 protected:
  /// Makes one pilot of node 0 with its agent.
  HoldKey lend_first() {
    run(asked<EnsureHold>()[0].key, "70", {name(0)});
    wait(Duration::seconds(3));
    cluster_.send(NodeJoined{NodeId(0), 7});
    return asked<EnsureHold>()[0].key;
  }
  void drain_there() {
    nodes_ = {{.name = name(0), .out_of_service = true, .drained = true, .reason = "fan broken"}};
    wait(Duration::seconds(3));
  }
  void resume_there() {
    nodes_ = {{.name = name(0), .reason = ""}};
    wait(Duration::seconds(3));
  }
  [[nodiscard]] const NodeRecord& first() const { return cluster_.state().node(NodeId(0)); }
};

TEST_F(LentServiceTest, ANodeThatItsManagerDrainsIsDrainedWhileItsJobEnds) {
  begin();
  const JobId job = submit(8);
  wait(Duration::seconds(3));
  (void)lend_first();
  cluster_.tick();
  cluster_.up(job);
  drain_there();
  EXPECT_EQ(first().health, NodeHealth::kDraining);
  EXPECT_EQ(first().drain_why, "slurm: fan broken");
  EXPECT_EQ(cluster_.phase(job), JobPhase::kRunning) << "as a job of the manager would";
  EXPECT_TRUE(asked<ReleaseHold>().empty());
  cluster_.end(job);
  wait(Duration::seconds(3));
  EXPECT_EQ(asked<ReleaseHold>().size(), 1u);
  EXPECT_EQ(first().health, NodeHealth::kAbsent);
  EXPECT_TRUE(first().drain);
  resume_there();
  EXPECT_FALSE(first().drain);
}

TEST_F(LentServiceTest, ADrainOfTheManagerThatIsTakenBackEndsHereToo) {
  begin({.keep = 2});
  wait(Duration::seconds(3));
  run(asked<EnsureHold>()[0].key, "70", {name(0), name(1)});
  wait(Duration::seconds(3));
  cluster_.send(NodeJoined{NodeId(0), 7});
  cluster_.send(NodeJoined{NodeId(1), 7});
  drain_there();
  EXPECT_EQ(first().health, NodeHealth::kDrained);
  resume_there();
  EXPECT_EQ(first().health, NodeHealth::kReady);
}

TEST_F(LentServiceTest, TheDrainOfAnOperatorStaysWhateverTheManagerSays) {
  begin({.keep = 2});
  wait(Duration::seconds(3));
  run(asked<EnsureHold>()[0].key, "70", {name(0), name(1)});
  wait(Duration::seconds(3));
  cluster_.send(NodeJoined{NodeId(0), 7});
  cluster_.send(DrainNode{NodeId(0), false, "disk"});
  drain_there();
  resume_there();
  EXPECT_EQ(first().health, NodeHealth::kDrained);
  EXPECT_EQ(first().drain_why, "disk");
}

TEST_F(LentServiceTest, ANodeThatOnlyDoesNotAnswerItsManagerIsNotDrained) {
  begin({.keep = 1});
  wait(Duration::seconds(3));
  (void)lend_first();
  nodes_ = {{.name = name(0), .out_of_service = true, .reason = "Not responding"}};
  wait(Duration::seconds(3));
  EXPECT_EQ(first().health, NodeHealth::kReady);
}

// A job waited for ever: the drained node was held, and counted as what the job needs.
TEST_F(LentServiceTest, AnotherNodeIsAskedForInPlaceOfADrainedOneWhichIsAvoided) {
  begin({.keep = 1});
  wait(Duration::seconds(3));
  (void)lend_first();
  cluster_.send(DrainNode{NodeId(0), false, "disk"});
  wait(Duration::seconds(3));
  EXPECT_EQ(asked<ReleaseHold>().size(), 1u);
  ASSERT_EQ(asked<EnsureHold>().size(), 2u);
  EXPECT_TRUE(asked<EnsureHold>()[0].avoid.empty());
  EXPECT_EQ(asked<EnsureHold>()[1].avoid, std::vector<std::string>{name(0)});
}

TEST_F(LentServiceTest, AWaitingHoldIsAskedForAnewOnceANodeThatItAvoidsIsResumed) {
  begin({.keep = 1});
  wait(Duration::seconds(3));
  (void)lend_first();
  cluster_.send(DrainNode{NodeId(0), false, "disk"});
  wait(Duration::seconds(3));
  const HoldKey key = asked<EnsureHold>().at(1).key;
  hear(HoldAnswer{.key = key, .id = "71", .text = ""});
  cluster_.send(ResumeNode{NodeId(0)});
  wait(Duration::seconds(3));
  EXPECT_EQ(asked<ReleaseHold>().back().id, "71");
  ASSERT_EQ(asked<EnsureHold>().size(), 3u);
  EXPECT_TRUE(asked<EnsureHold>()[2].avoid.empty());
}

TEST_F(LentServiceTest, NoMoreNodesAreAskedForThanAreNotDrained) {
  begin({.pilot_nodes = 4, .keep = 4});
  wait(Duration::seconds(3));
  const HoldKey key = asked<EnsureHold>().at(0).key;
  run(key, "70", {name(0), name(1), name(2), name(3)});
  wait(Duration::seconds(3));
  for (std::uint32_t n = 0; n < 4; ++n) cluster_.send(NodeJoined{NodeId(n), 7});
  for (std::uint32_t n = 0; n < 4; ++n) cluster_.send(DrainNode{NodeId(n), false, "power"});
  wait(Duration::seconds(3));
  EXPECT_EQ(asked<EnsureHold>().size(), 1u) << "nothing is left to ask for";
  cluster_.send(ResumeNode{NodeId(1)});
  cluster_.send(ResumeNode{NodeId(2)});
  wait(Duration::seconds(3));
  ASSERT_EQ(asked<EnsureHold>().size(), 2u);
  EXPECT_EQ(asked<EnsureHold>()[1].nodes, 2u);
  EXPECT_EQ(asked<EnsureHold>()[1].avoid, (std::vector<std::string>{name(0), name(3)}));
}

// An agent that is silent, or a node in repair, is not counted as what jobs wait for.
TEST_F(LentServiceTest, AHeldNodeThatTakesNoJobsIsReplacedAndGivenBackWhenIdle) {
  begin({.keep = 1, .idle = Duration::minutes(8)});
  wait(Duration::seconds(3));
  (void)lend_first();
  cluster_.send(NodeFault{NodeId(0), FaultLayer::kHost, "xid 79", true, true});
  ASSERT_NE(first().health, NodeHealth::kReady);
  wait(Duration::seconds(3));
  EXPECT_EQ(asked<EnsureHold>().size(), 2u);
  wait(Duration::minutes(7));
  EXPECT_TRUE(asked<ReleaseHold>().empty());
  wait(Duration::minutes(2));
  ASSERT_FALSE(asked<ReleaseHold>().empty());
  EXPECT_EQ(asked<ReleaseHold>()[0].id, "70");
}

// A broken node was ready again in the middle of its repair.
TEST_F(LentServiceTest, AResumptionThereEndsNoQuarantineAndNoMaintenanceWindow) {
  begin({.pilot_nodes = 2, .keep = 2});
  wait(Duration::seconds(3));
  run(asked<EnsureHold>()[0].key, "70", {name(0), name(1)});
  wait(Duration::seconds(3));
  cluster_.send(NodeJoined{NodeId(0), 7});
  cluster_.send(NodeJoined{NodeId(1), 7});
  const Instant tomorrow = cluster_.now() + Duration::hours(20);
  cluster_.send(SetMaintenance{1, {NodeId(0)}, tomorrow, tomorrow + Duration::hours(1), "pump"});
  drain_there();
  EXPECT_EQ(first().health, NodeHealth::kDrained);
  resume_there();
  EXPECT_EQ(cluster_.state().closed().windows().size(), 1u);
  cluster_.send(SetMaintenance{1, {}, {}, {}, {}});
  wait(Duration::seconds(3));
  EXPECT_EQ(first().health, NodeHealth::kReady);
  drain_there();
  cluster_.send(NodeFault{NodeId(0), FaultLayer::kHost, "xid 79", true, true});
  const NodeHealth broken = first().health;
  resume_there();
  EXPECT_EQ(first().health, broken);
}

TEST_F(LentServiceTest, NodesInAMaintenanceWindowAreAvoided) {
  begin({.keep = 1});
  const Instant now = cluster_.now();
  cluster_.send(SetMaintenance{1, {NodeId(0)}, now, now + Duration::hours(1), "pump"});
  wait(Duration::seconds(3));
  ASSERT_FALSE(asked<EnsureHold>().empty());
  EXPECT_EQ(asked<EnsureHold>().back().avoid, std::vector<std::string>{name(0)});
}

// Four nodes stayed idle because one of them was of use.
TEST_F(LentServiceTest, AnIdlePilotIsGivenBackThoughOnlyOneOfItsNodesTakesJobs) {
  begin({.pilot_nodes = 4});
  const JobId job = submit(32);
  wait(Duration::seconds(3));
  run(asked<EnsureHold>().at(0).key, "70", {name(0), name(1), name(2), name(3)});
  wait(Duration::seconds(3));
  for (std::uint32_t n = 0; n < 4; ++n) cluster_.send(NodeJoined{NodeId(n), 7});
  cluster_.send(CancelJob{job});
  for (std::uint32_t n = 0; n < 3; ++n) cluster_.send(DrainNode{NodeId(n), false, "power"});
  wait(Duration::minutes(4));
  EXPECT_TRUE(asked<ReleaseHold>().empty());
  wait(Duration::minutes(2));
  ASSERT_FALSE(asked<ReleaseHold>().empty());
  EXPECT_EQ(asked<ReleaseHold>()[0].id, "70");
}

// The first agent joins before a list shows the other nodes.
TEST_F(LentServiceTest, APilotOfSeveralNodesCountsWholeBeforeAListShowsItsNodes) {
  begin({.pilot_nodes = 2, .keep = 2});
  wait(Duration::seconds(3));
  const HoldKey key = asked<EnsureHold>().at(0).key;
  cluster_.send(DrainNode{NodeId(0), false, "disk"});
  ASSERT_TRUE(link_->admit(NodeId(1), {key, "70"}, cluster_.state(), cluster_.now()));
  settle();
  cluster_.send(NodeJoined{NodeId(1), 7});
  wait(Duration::seconds(3));
  EXPECT_EQ(asked<EnsureHold>().size(), 1u);
}

// A job waited beside a pilot that was idle and too old for it.
TEST_F(LentServiceTest, AnIdlePilotThatEndsTooSoonForAJobIsNotCounted) {
  begin({.keep = 1});
  wait(Duration::seconds(3));
  (void)lend_first();
  holds_[0].left = Duration::minutes(30);
  wait(Duration::seconds(3));
  Submission job = cluster_.job(8);
  job.request.estimate = Duration::hours(1);
  (void)cluster_.submit(job);
  cluster_.tick();
  wait(Duration::seconds(3));
  EXPECT_EQ(asked<EnsureHold>().size(), 2u);
}

// A second hold had the key of the first, and both were one to everybody.
TEST_F(LentServiceTest, NoKeyIsUsedTwiceWhenTheFleetChanges) {
  begin({.keep = 1});
  wait(Duration::seconds(3));
  const HoldKey first_key = lend_first();
  const std::uint64_t asked_before = link_->asked();
  HoldPool pool = link_->pools()[0];
  pool.keep = 2;
  link_ =
      std::make_unique<HoldLink>(HoldSetup{.term = term_, .asked = asked_before, .pools = {pool}},
                                 cluster_.state(), cluster_.now());
  settle();
  wait(Duration::seconds(5));
  ASSERT_EQ(asked<EnsureHold>().size(), 2u);
  EXPECT_NE(asked<EnsureHold>()[1].key, first_key);
}

// Eight idle pilots were given back at once because a job needed a younger one.
TEST_F(LentServiceTest, PilotsThatEndTooSoonForOneJobAreKeptForOthersUntilThereIsNoRoom) {
  begin({.keep = 2});
  wait(Duration::seconds(3));
  const std::vector<EnsureHold> first = asked<EnsureHold>();
  ASSERT_EQ(first.size(), 2u);
  for (std::uint32_t n = 0; n < 2; ++n) {
    run(first[n].key, std::to_string(70 + n), {name(n)});
    holds_.back().left = Duration::minutes(50);
  }
  wait(Duration::seconds(3));
  for (std::uint32_t n = 0; n < 2; ++n) cluster_.send(NodeJoined{NodeId(n), 7});
  wait(Duration::minutes(6));
  Submission job = cluster_.job(32);
  job.request.estimate = Duration::hours(1);
  (void)cluster_.submit(job);
  cluster_.tick();
  const std::size_t before = asked<ReleaseHold>().size();
  EXPECT_EQ(before, 0u);
  wait(Duration::seconds(3));
  const std::vector<EnsureHold> all = asked<EnsureHold>();
  ASSERT_EQ(all.size(), 4u) << "two kept, and four nodes for the job, two at a time";
  EXPECT_EQ(all[2].nodes, 2u);
  EXPECT_EQ(all[3].nodes, 2u);
  EXPECT_EQ(asked<ReleaseHold>().size(), 2u) << "there is room for four only";
}

// The end of a pilot as planned counted as a refusal, and the next one came only after a pause.
TEST_F(LentServiceTest, APilotWhoseTimeIsOverIsGivenBackAndTheNextOneFollowsAtOnce) {
  begin({.keep = 1, .idle = Duration::seconds(20)});
  wait(Duration::seconds(3));
  run(asked<EnsureHold>().at(0).key, "70", {name(0)});
  holds_.back().left = Duration::minutes(10);
  wait(Duration::seconds(3));
  holds_.back().left.reset();
  cluster_.send(NodeJoined{NodeId(0), 7});
  wait(Duration::minutes(8));
  EXPECT_TRUE(asked<ReleaseHold>().empty());
  wait(Duration::seconds(90));
  ASSERT_FALSE(asked<ReleaseHold>().empty());
  EXPECT_EQ(asked<ReleaseHold>()[0].id, "70");
  EXPECT_EQ(link_->manager(0).refused.text, "");
  holds_.clear();
  wait(Duration::seconds(15));
  EXPECT_GE(asked<EnsureHold>().size(), 2u);
}

TEST_F(LentServiceTest, APilotOnNodesOfOthersIsGivenBackAndNoOtherFollowsAtOnce) {
  begin({.keep = 1});
  wait(Duration::seconds(3));
  run(asked<EnsureHold>().at(0).key, "70", {"foreign"});
  wait(Duration::seconds(8));
  ASSERT_FALSE(asked<ReleaseHold>().empty());
  EXPECT_EQ(asked<ReleaseHold>()[0].id, "70");
  EXPECT_EQ(asked<EnsureHold>().size(), 1u);
}

TEST_F(LentServiceTest, NodesThatTheirManagerDoesNotHaveAreOutOfService) {
  nodes_ = {{.name = name(0), .reason = ""},
            {.name = name(1), .out_of_service = true, .reason = "Not responding"},
            {.name = name(3), .reason = ""}};
  begin();
  wait(Duration::seconds(3));
  EXPECT_EQ(link_->manager(0).out_of_service,
            (std::vector<std::string>{name(1) + " (Not responding)", name(2) + " (not in Slurm)"}));
}

}  // namespace
}  // namespace orrery
