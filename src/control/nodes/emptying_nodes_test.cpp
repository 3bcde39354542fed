#include "control/nodes/emptying_nodes.hpp"

#include <gtest/gtest.h>

#include "control/scripted_cluster_test.hpp"

namespace orrery {
namespace {

class EmptyingNodesTest : public ::testing::Test {
 protected:
  void set(NodeId node, NodeHealth health) { recorder_.emit(NodeChanged{node, health, {}}); }
  [[nodiscard]] NodeHealth health(NodeId node) const { return recorder_.state().node(node).health; }

  const NodeId drained_{1};
  const NodeId faulty_{2};
  ScriptedCluster cluster_;
  Recorder recorder_{cluster_.setup()};
  EmptyingNodes emptying_{recorder_};
};

TEST_F(EmptyingNodesTest, ADrainingNodeIsDrainedAndAFaultyOneGoesToRepair) {
  set(drained_, NodeHealth::kDraining);
  set(faulty_, NodeHealth::kQuarantined);
  emptying_.add(drained_);
  emptying_.settle();
  EXPECT_EQ(health(drained_), NodeHealth::kDrained);
  EXPECT_EQ(health(faulty_), NodeHealth::kQuarantined) << "it was not added";
  EXPECT_TRUE(recorder_.outcome().actions.empty());
  emptying_.add(faulty_);
  emptying_.settle();
  EXPECT_EQ(health(faulty_), NodeHealth::kRepairing);
  ASSERT_EQ(recorder_.outcome().actions.size(), 1U);
  EXPECT_EQ(std::get<RepairNode>(recorder_.outcome().actions.front()).node, faulty_);
}

TEST_F(EmptyingNodesTest, ANodeIsSettledOnceAndNotAfterItWasRemoved) {
  set(drained_, NodeHealth::kDraining);
  emptying_.add(drained_);
  emptying_.remove(drained_);
  emptying_.settle();
  EXPECT_EQ(health(drained_), NodeHealth::kDraining);
  emptying_.add(drained_);
  emptying_.settle();
  set(drained_, NodeHealth::kDraining);
  emptying_.settle();
  EXPECT_EQ(health(drained_), NodeHealth::kDraining);
}

TEST_F(EmptyingNodesTest, TheStateNamesThem) {
  set(drained_, NodeHealth::kDraining);
  set(faulty_, NodeHealth::kQuarantined);
  emptying_.add(NodeId(3));
  emptying_.take_up_fleet();
  emptying_.settle();
  EXPECT_EQ(health(drained_), NodeHealth::kDrained);
  EXPECT_EQ(health(faulty_), NodeHealth::kRepairing);
  EXPECT_EQ(health(NodeId(3)), NodeHealth::kReady);
}

TEST(EmptyingNodes, WaitForTheLastJobOnThem) {
  ScriptedCluster cluster;
  const JobId first = cluster.run(cluster.job(4));
  const JobId second = cluster.run(cluster.job(4));
  const NodeId node = cluster.nodes(first).front();
  ASSERT_EQ(cluster.nodes(second).front(), node);
  cluster.send(DrainNode{node});
  cluster.end(first);
  EXPECT_EQ(cluster.health(node), NodeHealth::kDraining);
  cluster.end(second);
  EXPECT_EQ(cluster.health(node), NodeHealth::kDrained);
}

}  // namespace
}  // namespace orrery
