#include <gtest/gtest.h>

#include "control/scripted_cluster_test.hpp"
#include "control/state/invariants.hpp"
#include "control/state/snapshot.hpp"

namespace orrery {
namespace {

/// Four nodes that a resource manager lends; none is lent at first.
class LentNodesTest : public testing::Test {
 protected:
  LentNodesTest() {
    for (std::uint32_t n = 0; n < 4; ++n) absent(NodeId(n));
  }

  void absent(NodeId node) { cluster_.send(NodeAbsent{node, false, "not lent"}); }
  void grant(NodeId node, Instant until = Instant::max()) {
    cluster_.send(NodeGranted{node, "slurm/pilot-1-1", until});
  }
  /// The node is lent, and its agent joins.
  void lend(NodeId node, Instant until = Instant::max()) {
    grant(node, until);
    cluster_.send(NodeJoined{node, 7});
  }

  ScriptedCluster cluster_{{.nodes_begin = NodeHealth::kJoining}};
  const NodeId node_{0};
};

TEST_F(LentNodesTest, AreAbsentUntilTheyAreLent) {
  const JobId id = cluster_.submit(cluster_.job(8));
  cluster_.tick();
  EXPECT_EQ(cluster_.phase(id), JobPhase::kQueued);
  EXPECT_EQ(cluster_.health(node_), NodeHealth::kAbsent);
  grant(node_);
  EXPECT_EQ(cluster_.health(node_), NodeHealth::kJoining);
  ASSERT_EQ(cluster_.actions().size(), 1u);
  EXPECT_EQ(std::get<GreetNode>(cluster_.actions()[0]).node, node_);
  cluster_.send(NodeJoined{node_, 7});
  cluster_.tick();
  EXPECT_EQ(cluster_.phase(id), JobPhase::kStarting);
  EXPECT_EQ(cluster_.nodes(id), std::vector<NodeId>{node_});
}

TEST_F(LentNodesTest, AreNotLentTwiceByTheSameHold) {
  grant(node_);
  grant(node_);
  EXPECT_EQ(cluster_.count<NodeLent>(), 0u);
  absent(node_);
  absent(node_);
  EXPECT_EQ(cluster_.count<NodeLent>(), 0u);
}

TEST_F(LentNodesTest, AreNotAtFaultWhenTheyAreTakenBack) {
  lend(node_);
  lend(NodeId(1));
  const JobId id = cluster_.run(cluster_.job(8));
  const NodeId had = cluster_.nodes(id).at(0);
  absent(had);
  EXPECT_EQ(cluster_.health(had), NodeHealth::kLost) << "ranks may still be there";
  EXPECT_TRUE(cluster_.state().node(had).faults.empty());
  cluster_.gone(id);
  cluster_.tick();
  absent(had);
  EXPECT_EQ(cluster_.health(had), NodeHealth::kAbsent);
  EXPECT_EQ(cluster_.phase(id), JobPhase::kStarting);
  EXPECT_NE(cluster_.nodes(id).at(0), had);
}

TEST_F(LentNodesTest, FreeTheirDevicesAtOnceWhereTheirManagerProvesThatNothingIsLeft) {
  lend(node_);
  const JobId id = cluster_.run(cluster_.job(8));
  cluster_.send(NodeAbsent{node_, true, "ended"});
  EXPECT_EQ(cluster_.health(node_), NodeHealth::kAbsent);
  EXPECT_EQ(cluster_.phase(id), JobPhase::kQueued);
}

TEST_F(LentNodesTest, LentForOneJobReplaceNoNodeOfAnother) {
  lend(node_);
  const JobId id = cluster_.run(cluster_.job(8));
  const JobId other = cluster_.submit(cluster_.job(8));
  cluster_.send(NodeGranted{NodeId(1), "slurm/job-1-1-2", Instant::max(), other});
  cluster_.send(SetSpare{NodeId(1), true});
  cluster_.send(NodeJoined{NodeId(1), 7});
  cluster_.send(NodeFault{node_, FaultLayer::kHost, "ecc", true, true});
  cluster_.gone(id);
  EXPECT_EQ(cluster_.phase(id), JobPhase::kQueued);
  EXPECT_EQ(broken_invariant(cluster_.state()), std::nullopt);
}

TEST_F(LentNodesTest, AreEmptiedWhenTheTimeOfTheirHoldIsOver) {
  const Instant end = cluster_.now() + Duration::hours(2);
  lend(node_, end);
  const JobId id = cluster_.run(cluster_.job(8));  // for an hour
  cluster_.wait(Duration::minutes(90));
  ASSERT_EQ(cluster_.phase(id), JobPhase::kRunning);
  Submission longer = cluster_.job(8);
  cluster_.end(id);
  const JobId late = cluster_.submit(longer);
  cluster_.tick();
  EXPECT_EQ(cluster_.phase(late), JobPhase::kQueued) << "it would not end in time";
  lend(NodeId(1), cluster_.now() + Duration::hours(3));
  cluster_.tick();
  EXPECT_EQ(cluster_.nodes(late), std::vector<NodeId>{NodeId(1)});
  cluster_.wait(Duration::minutes(31));
  EXPECT_EQ(cluster_.health(node_), NodeHealth::kDrained);
}

// A keeper died a moment later: its node was at fault, and the job began there again.
TEST_F(LentNodesTest, AreEmptiedAtOnceWhenTheirHoldIsBeingEnded) {
  lend(node_);
  const JobId id = cluster_.run(cluster_.job(8));
  grant(node_, cluster_.now());
  EXPECT_EQ(cluster_.health(node_), NodeHealth::kDraining);
  EXPECT_EQ(cluster_.phase(id), JobPhase::kStopping);
  cluster_.gone(id);
  cluster_.tick();
  EXPECT_EQ(cluster_.phase(id), JobPhase::kQueued);
}

TEST_F(LentNodesTest, TakeJobsOfUnknownLengthAndPassThemOnAtTheirEnd) {
  lend(node_, cluster_.now() + Duration::hours(1));
  Submission endless = cluster_.job(8);
  endless.request.estimate.reset();
  const JobId id = cluster_.run(endless);
  ASSERT_EQ(cluster_.nodes(id), std::vector<NodeId>{node_});
  lend(NodeId(1), cluster_.now() + Duration::hours(5));
  cluster_.wait(Duration::minutes(61));
  EXPECT_EQ(cluster_.phase(id), JobPhase::kStopping);
  cluster_.gone(id);
  cluster_.tick();
  EXPECT_EQ(cluster_.nodes(id), std::vector<NodeId>{NodeId(1)});
}

TEST_F(LentNodesTest, MayBeLentForLonger) {
  lend(node_, cluster_.now() + Duration::hours(1));
  grant(node_, cluster_.now() + Duration::hours(5));
  EXPECT_EQ(cluster_.state().closed().list().size(), 1u);
  cluster_.wait(Duration::hours(2));
  EXPECT_EQ(cluster_.health(node_), NodeHealth::kReady);
}

TEST_F(LentNodesTest, KeepTheirLoansInSnapshots) {
  const Instant end = cluster_.now() + Duration::hours(1);
  lend(node_, end);
  lend(NodeId(2), end);
  Core again(cluster_.setup());
  ASSERT_TRUE(again.restore(snapshot_of(cluster_.state())));
  again.resume();
  EXPECT_EQ(again.state().node(node_).loan.hold, "slurm/pilot-1-1");
  ASSERT_EQ(again.state().closed().list().size(), 1u);
  EXPECT_EQ(again.state().closed().list()[0].nodes.size(), 2u);
  (void)again.handle({end, Tick{}, {}});
  EXPECT_EQ(again.state().node(node_).health, NodeHealth::kDrained);
}

TEST_F(LentNodesTest, CountAsAbsentInTheLedger) {
  lend(node_);
  cluster_.wait(Duration::hours(1));
  const DeviceTime absent =
      cluster_.state().ledger().sum(FleetTypeId(0), DeviceUse::kAbsent, cluster_.now());
  EXPECT_DOUBLE_EQ(device_hours(absent), 24);
}

TEST_F(LentNodesTest, BecomeTheClustersOwnWithoutAHold) {
  cluster_.send(NodeGranted{node_, {}});
  EXPECT_EQ(cluster_.health(node_), NodeHealth::kJoining);
  cluster_.send(NodeJoined{node_, 7});
  EXPECT_EQ(cluster_.health(node_), NodeHealth::kReady);
  EXPECT_TRUE(cluster_.state().node(node_).loan.hold.empty());
}

}  // namespace
}  // namespace orrery
