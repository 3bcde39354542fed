// control/foreign_work_test.cpp - nodes that others use, and the bills of holds.
#include <gtest/gtest.h>

#include "control/scripted_cluster_test.hpp"
#include "control/state/invariants.hpp"
#include "control/state/snapshot.hpp"

namespace orrery {
namespace {

class ForeignWorkTest : public testing::Test {
 protected:
  void use(NodeId node, ForeignClaim claim, Duration left = Duration::hours(2)) {
    cluster_.send(ForeignUse{node, claim, cluster_.now() + left, "ann (17) of hpc"});
  }
  void leave(NodeId node) { cluster_.send(ForeignUse{.node = node}); }
  [[nodiscard]] double foreign_hours() const {
    return device_hours(
        cluster_.state().ledger().sum(FleetTypeId(0), DeviceUse::kForeign, cluster_.now()));
  }
  [[nodiscard]] State restored() const {
    State again(cluster_.setup());
    EXPECT_TRUE(restore(again, snapshot_of(cluster_.state())));
    return again;
  }

  ScriptedCluster cluster_;
  const NodeId node_{0};
};

TEST_F(ForeignWorkTest, TakesANodeUntilItIsDone) {
  use(node_, ForeignClaim::kTaken);
  EXPECT_EQ(cluster_.health(node_), NodeHealth::kDrained);
  EXPECT_EQ(cluster_.state().node(node_).drain_why, "others use it");
  cluster_.wait(Duration::hours(1));
  EXPECT_DOUBLE_EQ(foreign_hours(), 8);
  leave(node_);
  EXPECT_EQ(cluster_.health(node_), NodeHealth::kReady);
  EXPECT_TRUE(cluster_.state().closed().list().empty());
  EXPECT_EQ(broken_invariant(cluster_.state()), std::nullopt);
}

TEST_F(ForeignWorkTest, IsNeverAVictimAndOurJobsMakeRoom) {
  const JobId id = cluster_.run(cluster_.job(32));
  use(node_, ForeignClaim::kTaken);
  EXPECT_EQ(cluster_.phase(id), JobPhase::kStopping);
  EXPECT_EQ(cluster_.health(node_), NodeHealth::kDraining);
  cluster_.gone(id);
  EXPECT_EQ(cluster_.health(node_), NodeHealth::kDrained);
  EXPECT_EQ(cluster_.phase(id), JobPhase::kQueued);
  EXPECT_TRUE(cluster_.state().node(node_).faults.empty());
  cluster_.tick();
  EXPECT_EQ(cluster_.phase(id), JobPhase::kQueued) << "it needs all four nodes";
}

TEST_F(ForeignWorkTest, ThatNobodyCanNameClosesTheNodeAndStopsNothing) {
  const auto unknown = [&] {
    cluster_.send(ForeignUse{.node = node_, .claim = ForeignClaim::kTaken, .who = {}});
  };
  const JobId id = cluster_.run(cluster_.job(32));
  unknown();
  EXPECT_EQ(cluster_.phase(id), JobPhase::kRunning);
  EXPECT_EQ(cluster_.health(node_), NodeHealth::kDraining);
  cluster_.send(ResumeNode{node_});
  EXPECT_EQ(cluster_.health(node_), NodeHealth::kDraining);
  leave(node_);
  EXPECT_EQ(cluster_.health(node_), NodeHealth::kReady);
  EXPECT_EQ(cluster_.phase(id), JobPhase::kRunning);
  unknown();
  cluster_.send(DrainNode{node_, false, "fan"});
  cluster_.send(ResumeNode{node_});
  EXPECT_EQ(cluster_.phase(id), JobPhase::kRunning) << "also when an operator's drain ends";
  EXPECT_EQ(cluster_.health(node_), NodeHealth::kDraining);
  use(node_, ForeignClaim::kTaken);
  EXPECT_EQ(cluster_.phase(id), JobPhase::kStopping) << "others are there";
  EXPECT_EQ(cluster_.state().node(node_).drain_why, "others use it");
  cluster_.gone(id);
  leave(node_);
  unknown();
  EXPECT_EQ(cluster_.health(node_), NodeHealth::kDrained) << "nothing runs there";
  EXPECT_EQ(broken_invariant(cluster_.state()), std::nullopt);
}

TEST_F(ForeignWorkTest, ThatNobodyCanNameDoesNotKeepJobsInAMaintenanceWindow) {
  const JobId id = cluster_.run(cluster_.job(32));
  const Instant now = cluster_.now();
  cluster_.send(SetMaintenance{
      .nodes = {node_}, .from = now + Duration::hours(1), .to = now + Duration::hours(2)});
  cluster_.send(ForeignUse{.node = node_, .claim = ForeignClaim::kTaken, .who = {}});
  cluster_.wait(Duration::minutes(59));
  EXPECT_EQ(cluster_.phase(id), JobPhase::kRunning);
  cluster_.wait(Duration::minutes(2));
  EXPECT_EQ(cluster_.phase(id), JobPhase::kStopping);
}

TEST(ForeignWork, CountsInBackfill) {
  ScriptedCluster cluster({.policy = "easy"});
  const auto submit = [&](Duration length, std::uint32_t devices) {
    Submission submission = cluster.job(devices);
    submission.request.estimate = length;
    return cluster.submit(submission);
  };
  const Instant until = cluster.now() + Duration::hours(2);
  for (std::uint32_t n = 0; n < 2; ++n) {
    cluster.send(ForeignUse{NodeId(n), ForeignClaim::kTaken, until, "ann (17) of hpc"});
  }
  const JobId wide = submit(Duration::hours(1), 32);
  const JobId overlong = submit(Duration::hours(3), 8);
  const JobId brief = submit(Duration::hours(1), 8);
  cluster.tick();
  EXPECT_EQ(cluster.phase(wide), JobPhase::kQueued);
  EXPECT_EQ(cluster.phase(brief), JobPhase::kStarting) << "it is done before others are";
  EXPECT_EQ(cluster.phase(overlong), JobPhase::kQueued) << "it would delay the wide one";
  ASSERT_EQ(cluster.state().slots().size(), 1u);
  EXPECT_EQ(cluster.state().slots()[0].job, wide);
  EXPECT_EQ(cluster.state().slots()[0].start, until) << "when the nodes come back";
}

TEST_F(ForeignWorkTest, ThatIsNotedChangesNothing) {
  const JobId id = cluster_.run(cluster_.job(32));
  use(node_, ForeignClaim::kNoted);
  EXPECT_EQ(cluster_.phase(id), JobPhase::kRunning);
  EXPECT_EQ(cluster_.health(node_), NodeHealth::kReady);
  EXPECT_EQ(cluster_.state().node(node_).foreign.who, "ann (17) of hpc");
  EXPECT_TRUE(cluster_.state().closed().list().empty());
  use(node_, ForeignClaim::kNoted);
  EXPECT_EQ(cluster_.count<ForeignSet>(), 0u) << "nothing has changed";
}

TEST_F(ForeignWorkTest, KeepsANodeThatReturnsFromAnotherCauseOut) {
  use(node_, ForeignClaim::kTaken);
  cluster_.send(ResumeNode{node_});
  EXPECT_EQ(cluster_.health(node_), NodeHealth::kDrained) << "an operator cannot end others' work";
  cluster_.send(NodeHeard{node_, NodeHealth::kLost, 5});
  cluster_.send(NodeJoined{node_, 5});
  EXPECT_EQ(cluster_.health(node_), NodeHealth::kDrained);
  cluster_.send(DrainNode{node_, false, "fan"});
  leave(node_);
  EXPECT_EQ(cluster_.health(node_), NodeHealth::kDrained) << "the operator's drain stays";
  cluster_.send(ResumeNode{node_});
  EXPECT_EQ(cluster_.health(node_), NodeHealth::kReady);
}

TEST_F(ForeignWorkTest, LastsInSnapshots) {
  use(node_, ForeignClaim::kTaken);
  use(NodeId(1), ForeignClaim::kTaken, Duration::hours(5));
  use(NodeId(2), ForeignClaim::kNoted);
  const State again = restored();
  EXPECT_EQ(digest_of(again), digest_of(cluster_.state()));
  EXPECT_EQ(again.closed().list().size(), 2u);
}

// --- Bills of holds ------------------------------------------------------------------------------

class HoldBillsTest : public ForeignWorkTest {
 protected:
  static constexpr const char* kHold = "hpc/pilot-1-1:72";
  void lend() {
    cluster_.send(NodeAbsent{node_, false, "not lent"});
    cluster_.send(NodeGranted{node_, kHold, Instant::max()});
    cluster_.send(NodeJoined{node_, 7});
  }
  void take_back() { cluster_.send(NodeAbsent{node_, true, "ended"}); }
  [[nodiscard]] LentTotal total() const {
    const auto& totals = cluster_.state().bills().totals();
    return totals.contains("hpc") ? totals.at("hpc") : LentTotal();
  }
};

TEST_F(HoldBillsTest, AreWhatTheManagerRecords) {
  lend();
  const Instant from = cluster_.now() - Duration::seconds(2);
  const JobId id = cluster_.run(cluster_.job(8));
  ASSERT_EQ(cluster_.nodes(id), std::vector<NodeId>{node_});
  cluster_.wait(Duration::minutes(30));
  cluster_.end(id);
  cluster_.gone(id);
  cluster_.wait(Duration::minutes(30));
  const Instant to = cluster_.now() + Duration::seconds(1);
  take_back();
  EXPECT_EQ(total().holds, 0u);
  cluster_.send(HoldRecorded{kHold, 1, from, to});
  cluster_.send(HoldRecorded{kHold, 1, from, to});
  EXPECT_EQ(total().holds, 1u) << "a hold is billed once";
  EXPECT_EQ(total().held, DeviceTime{(to - from).count_ns()});
  EXPECT_GE(total().used, DeviceTime{Duration::minutes(30).count_ns()});
  EXPECT_LT(total().used, DeviceTime{Duration::minutes(31).count_ns()});
  EXPECT_TRUE(cluster_.state().bills().open().empty());
}

TEST_F(HoldBillsTest, AreWhatControlSawIfTheManagerHasForgotten) {
  lend();
  cluster_.wait(Duration::hours(1));
  take_back();
  cluster_.send(HoldRecorded{kHold, 0, cluster_.now(), cluster_.now()});
  EXPECT_EQ(total().held, DeviceTime{Duration::hours(1).count_ns()});
  EXPECT_EQ(total().used, 0);
}

TEST_F(HoldBillsTest, WithoutARecordEndWithTheTimeOfTheLoan) {
  const Instant until = cluster_.now() + Duration::hours(1);
  lend();
  const JobId id = cluster_.run(cluster_.job(8));
  ASSERT_EQ(cluster_.nodes(id), std::vector<NodeId>{node_});
  cluster_.send(NodeGranted{node_, kHold, until});
  cluster_.wait(Duration::hours(60));
  take_back();
  cluster_.send(HoldRecorded{kHold, 0, cluster_.now(), cluster_.now()});
  EXPECT_EQ(total().held, DeviceTime{Duration::hours(1).count_ns()});
  EXPECT_LE(total().used, total().held);
}

TEST_F(HoldBillsTest, LastInSnapshotsWithTheUseOfNodesThatAreLentNow) {
  lend();
  const JobId id = cluster_.run(cluster_.job(8));
  ASSERT_EQ(cluster_.nodes(id), std::vector<NodeId>{node_});
  cluster_.wait(Duration::minutes(10));
  State again = restored();
  EXPECT_EQ(again.node(node_).loan.used, cluster_.state().node(node_).loan.used);
  cluster_.send(HoldRecorded{"hpc/pilot-1-2:73", 2, cluster_.now(), cluster_.now()});
  again = restored();
  EXPECT_TRUE(again.bills().has("hpc/pilot-1-2:73", cluster_.now()));
  EXPECT_EQ(again.bills().totals().at("hpc").holds, 1u);
}

TEST_F(HoldBillsTest, OfATimeThatRunsBackwardsAreRefused) {
  cluster_.wait(Duration::hours(1));
  const Outcome& outcome =
      cluster_.send(HoldRecorded{kHold, 1, cluster_.now(), cluster_.now() - Duration::seconds(1)});
  EXPECT_FALSE(outcome.answer.status);
  EXPECT_EQ(total().holds, 0u);
}

}  // namespace
}  // namespace orrery
