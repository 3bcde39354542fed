#include <gtest/gtest.h>

#include "control/scripted_cluster_test.hpp"
#include "control/state/snapshot.hpp"

namespace orrery {
namespace {

/// A cluster with a window over some of its nodes, which lasts from one hour to three from now.
class MaintenanceTest : public testing::Test {
 protected:
  void window(std::uint32_t id, std::vector<NodeId> nodes) {
    const Instant now = cluster_.now();
    cluster_.send(
        SetMaintenance{id, std::move(nodes), now + Duration::hours(1), now + Duration::hours(3)});
  }
  /// Submits a job of this length, on all eight devices of a node.
  JobId submit(Duration length) {
    Submission submission = cluster_.job(8);
    submission.request.estimate = length;
    return cluster_.submit(submission);
  }

  ScriptedCluster cluster_;
  const NodeId node_{0};
};

TEST_F(MaintenanceTest, KeepsNodesThatComeBackInItEmpty) {
  window(1, {node_});
  cluster_.send(NodeHeard{node_, NodeHealth::kLost, 5});
  cluster_.wait(Duration::hours(2));
  cluster_.send(NodeJoined{node_, 5});
  EXPECT_EQ(cluster_.health(node_), NodeHealth::kDrained);
  cluster_.wait(Duration::hours(2));
  EXPECT_EQ(cluster_.health(node_), NodeHealth::kReady);
}

TEST_F(MaintenanceTest, EndsForANodeWithTheLastWindowOverIt) {
  window(1, {node_});
  cluster_.wait(Duration::hours(1));
  window(2, {node_, NodeId(1)});  // from the second hour to the fourth
  cluster_.wait(Duration::hours(2));
  EXPECT_EQ(cluster_.health(node_), NodeHealth::kDrained);
  cluster_.wait(Duration::hours(1));
  EXPECT_EQ(cluster_.health(node_), NodeHealth::kReady);
  EXPECT_EQ(cluster_.health(NodeId(1)), NodeHealth::kReady);
}

TEST_F(MaintenanceTest, IsNoOperatorsDrainForAFaultThatComesMeanwhile) {
  const JobId id = cluster_.run(cluster_.job(32));
  window(1, {node_});
  cluster_.wait(Duration::hours(1));
  ASSERT_EQ(cluster_.health(node_), NodeHealth::kDraining);
  cluster_.send(NodeFault{node_, FaultLayer::kAccelerator, "xid 31", false, false});
  cluster_.gone(id);
  EXPECT_EQ(cluster_.health(node_), NodeHealth::kDrained);
  cluster_.wait(Duration::hours(2));
  EXPECT_EQ(cluster_.health(node_), NodeHealth::kReady);
}

TEST_F(MaintenanceTest, LeavesAnOperatorsDrainAlone) {
  cluster_.send(DrainNode{node_, false, "disk"});
  window(1, {node_, NodeId(1)});
  cluster_.wait(Duration::hours(1));
  cluster_.send(DrainNode{NodeId(1), false, "fan"});  // during the window
  cluster_.wait(Duration::hours(2));
  EXPECT_EQ(cluster_.health(node_), NodeHealth::kDrained);
  EXPECT_EQ(cluster_.health(NodeId(1)), NodeHealth::kDrained);
  cluster_.send(ResumeNode{NodeId(1)});
  EXPECT_EQ(cluster_.health(NodeId(1)), NodeHealth::kReady);
}

TEST_F(MaintenanceTest, ThatIsCalledOffGivesItsNodesBack) {
  window(1, {node_});
  cluster_.wait(Duration::hours(1));
  EXPECT_EQ(cluster_.health(node_), NodeHealth::kDrained);
  cluster_.send(SetMaintenance{1, {}, {}, {}});
  EXPECT_EQ(cluster_.health(node_), NodeHealth::kReady);
  EXPECT_TRUE(cluster_.state().closed().windows().empty());
}

TEST_F(MaintenanceTest, LetsGoOfANodeThatIsResumed) {
  window(0, {node_, NodeId(1)});
  window(0, {node_});
  EXPECT_EQ(cluster_.state().closed().windows().size(), 2u);
  cluster_.wait(Duration::hours(1));
  cluster_.send(ResumeNode{node_});
  EXPECT_EQ(cluster_.health(node_), NodeHealth::kReady);
  EXPECT_EQ(cluster_.health(NodeId(1)), NodeHealth::kDrained);
  EXPECT_EQ(cluster_.state().closed().windows().size(), 1u);
}

TEST_F(MaintenanceTest, ToComeIsForWhoIsDoneBefore) {
  std::vector<NodeId> all;
  for (std::uint32_t n = 0; n < cluster_.topology().node_count(); ++n) all.emplace_back(n);
  window(1, all);
  const JobId slow = submit(Duration::hours(2));
  const JobId quick = submit(Duration::minutes(30));
  cluster_.tick();
  EXPECT_EQ(cluster_.phase(slow), JobPhase::kQueued);
  EXPECT_EQ(cluster_.phase(quick), JobPhase::kStarting);
  cluster_.up(quick);
  cluster_.end(quick);
  cluster_.wait(Duration::hours(3));
  EXPECT_EQ(cluster_.phase(slow), JobPhase::kStarting);
}

TEST_F(MaintenanceTest, ToComeIsNoPlaceForAReplacementThatWouldNotBeDoneBefore) {
  for (const auto& [length, in_time] :
       {std::pair(Duration::minutes(40), true), std::pair(Duration::hours(2), false)}) {
    SCOPED_TRACE(length.text());
    ScriptedCluster cluster;
    Submission elastic = cluster.elastic_job(8, 16);
    elastic.request.estimate = length;
    const JobId id = cluster.run(elastic);
    const std::vector<NodeId> before = cluster.nodes(id);
    ASSERT_EQ(before, (std::vector{NodeId(0), NodeId(1)}));
    cluster.send(
        SetMaintenance{1, {NodeId(2)}, cluster.now() + Duration::hours(1), Instant::max()});
    cluster.send(NodeFault{NodeId(1), FaultLayer::kHost, "", true, true});
    EXPECT_EQ(cluster.nodes(id), (std::vector{NodeId(0), in_time ? NodeId(2) : NodeId(3)}));
  }
}

TEST_F(MaintenanceTest, ToComeKeepsASpareFromWhoWouldNotBeDoneBefore) {
  cluster_.send(SetSpare{NodeId(2), true});
  const JobId id = cluster_.start(cluster_.job(8));
  cluster_.up(id);
  const NodeId lost = cluster_.nodes(id).front();
  cluster_.send(
      SetMaintenance{1, {NodeId(2)}, cluster_.now() + Duration::minutes(30), Instant::max()});
  cluster_.send(NodeFault{lost, FaultLayer::kHost, "", true, true});
  cluster_.gone(id);
  ASSERT_EQ(cluster_.nodes(id).size(), 1u) << "there are others";
  EXPECT_NE(cluster_.nodes(id).front(), NodeId(2));
  EXPECT_TRUE(cluster_.state().node(NodeId(2)).spare);
}

TEST_F(MaintenanceTest, ToComeOverItsNodesKeepsAJobFromStartingThereAgain) {
  const JobId id = cluster_.run(cluster_.job(16));
  ASSERT_EQ(cluster_.nodes(id), (std::vector{NodeId(0), NodeId(1)}));
  cluster_.send(
      SetMaintenance{1, {NodeId(0)}, cluster_.now() + Duration::minutes(30), Instant::max()});
  cluster_.send(NodeFault{NodeId(1), FaultLayer::kHost, "", true, true});
  cluster_.gone(id);
  cluster_.tick();
  EXPECT_EQ(cluster_.nodes(id), (std::vector{NodeId(2), NodeId(3)}));
}

TEST_F(MaintenanceTest, LastsThroughASnapshot) {
  cluster_.send(DrainNode{NodeId(2), false, "disk"});
  window(1, {node_});
  cluster_.wait(Duration::hours(1));
  State again(cluster_.setup());
  ASSERT_TRUE(restore(again, snapshot_of(cluster_.state())));
  EXPECT_TRUE(again.closed().in_window(node_, cluster_.now()));
  EXPECT_FALSE(again.node(node_).drain);
  EXPECT_TRUE(again.node(NodeId(2)).drain);
  ASSERT_EQ(again.situation(cluster_.now()).closures.size(), 1u);
  EXPECT_EQ(again.situation(cluster_.now()).closures.front().nodes.front().node, node_);
}

}  // namespace
}  // namespace orrery
